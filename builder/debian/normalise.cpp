#include "builder/debian/normalise.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/tree_walk.hpp"

namespace mlenv::debian {
namespace {

/// Removed wherever they are; a `*` in the last part stands for anything.
constexpr std::array kRemoved{
    "etc/ssh/ssh_host_*_key",
    "etc/ssh/ssh_host_*_key.pub",
    "etc/ssl/certs/ssl-cert-snakeoil.pem",
    "etc/ssl/private/ssl-cert-snakeoil.key",
    "var/lib/dbus/machine-id",
    "var/lib/systemd/random-seed",
    "var/lib/urandom/random-seed",
    "etc/.pwd.lock",
    "etc/passwd-",
    "etc/group-",
    "etc/shadow-",
    "etc/gshadow-",
    "etc/subuid-",
    "etc/subgid-",
    "etc/mailcap.order-",
    "etc/apt/sources.list",
    "var/lib/dpkg/*-old",
    "var/lib/dpkg/available",
    "var/lib/dpkg/lock",
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/triggers/Lock",
    "var/lib/dpkg/tmp.ci",
    "var/lib/dpkg/tmp.preinst",
    "var/cache/debconf/*-old",
    "var/cache/ldconfig/aux-cache",
    "var/cache/apt/*.bin",
    "var/backups/*",
    "var/lib/ucf/*.[0-9]*",
    "root/.bash_history",
    "root/.cache",
};

/// Everything below these goes, but for `run/lock`; the folders stay.
constexpr std::array kEmptied{"tmp", "var/tmp", "run", "run/lock", "var/cache/fontconfig"};
constexpr std::string_view kKept = "run/lock";

/// Made empty by maintainer scripts, and appended to only where they exist.
constexpr std::array kEmptyLogs{"wtmp", "btmp", "lastlog", "faillog"};

/// `*` stands for any run of characters.
bool matches(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  return name.size() >= before.size() + after.size() && name.starts_with(before) &&
         name.ends_with(after);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    entries.push_back(entry.path());
  }
  return entries;
}

void remove_matching(const fs::path& root, std::string_view pattern) {
  const fs::path whole = root / pattern;
  for (const fs::path& entry : entries_of(whole.parent_path())) {
    if (matches(entry.filename().string(), whole.filename().string())) remove_tree(entry);
  }
}

/// Links by subject hash to a certificate that has gone.
void remove_dangling(const fs::path& root, const fs::path& folder) {
  for (const fs::path& entry : entries_of(root / folder)) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(entry, error))) continue;
    const fs::path target = fs::read_symlink(entry);
    if (target == "ssl-cert-snakeoil.pem") remove_tree(entry);
  }
}

/// `take` gets what is below and no folder; it may remove that.
void each_file(const fs::path& folder, const std::function<void(const TreeEntry&)>& take) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    if (!S_ISDIR(entry.status.st_mode)) take(entry);
    return true;
  };
  walk.sorted = true;
  walk_tree(folder, walk);
}

void remove_logs(const fs::path& folder) {
  each_file(folder, [&](const TreeEntry& entry) {
    if (!S_ISREG(entry.status.st_mode)) return;
    if (std::ranges::find(kEmptyLogs, entry.name) == kEmptyLogs.end()) {
      remove_tree_at(entry.folder, entry.name);
    } else {
      fs::resize_file(folder / entry.path, 0);
    }
  });
}

/// man-db's indexes hold times; it makes them again, daily or on the next installation.
void remove_man_indexes(const fs::path& folder) {
  each_file(folder, [](const TreeEntry& entry) {
    if (entry.name == "index.db") remove_tree_at(entry.folder, entry.name);
  });
}

void set_time(const fs::path& path, const std::array<timespec, 2>& times) {
  if (::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0) {
    throw os_error(errno, "cannot set the time of `{}`", path.string());
  }
}

void set_times_below(const fs::path& folder, const std::array<timespec, 2>& times) {
  const auto set = [&](const TreeEntry& entry) {
    if (::utimensat(entry.folder, entry.name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0) {
      throw os_error(errno, "cannot set the time of `{}`", short_path(folder, entry.path));
    }
  };
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    if (!S_ISDIR(entry.status.st_mode)) set(entry);
    return true;
  };
  walk.leave = set;
  walk_tree(folder, walk);
}

}  // namespace

void normalise(const fs::path& root) {
  for (const char* pattern : kRemoved) remove_matching(root, pattern);
  for (const char* folder : kEmptied) {
    for (const fs::path& entry : entries_of(root / folder)) {
      if (entry != root / kKept) remove_tree(entry);
    }
  }
  remove_dangling(root, "etc/ssl/certs");
  remove_man_indexes(root / "var/cache/man");
  remove_logs(root / "var/log");
  // Empty: systemd makes one at first start (machine-id(5)); absent means something else to it.
  if (fs::exists(fs::symlink_status(root / "etc/machine-id"))) {
    write_file(root / "etc/machine-id", "", false);
    if (::chmod((root / "etc/machine-id").c_str(), 0444) != 0) {
      throw os_error(errno, "cannot set the mode of `/etc/machine-id`");
    }
  }
}

void set_times(const fs::path& root, std::int64_t epoch) {
  const std::array<timespec, 2> times{timespec{epoch, 0}, timespec{epoch, 0}};
  set_times_below(root, times);
  set_time(root, times);
}

}  // namespace mlenv::debian
