#include "images/store_marks.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

/// Without /proc no boot can be told from another: then every mark is another boot's.
constexpr std::string_view kUnknownBoot = "unknown";
constexpr std::size_t kHexDigits = 64;  // of a SHA-256

/// A boot's id is a UUID.
bool is_boot_folder(const fs::path& folder) {
  constexpr std::string_view kForm = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
  const std::string name = folder.filename().string();
  const bool is_id = name.size() == kForm.size() &&
                     std::equal(name.begin(), name.end(), kForm.begin(), [](char c, char form) {
                       return form == '-' ? c == '-' : is_digit(c) || (c >= 'a' && c <= 'f');
                     });
  struct stat status {};
  return (is_id || name == kUnknownBoot) && ::lstat(folder.c_str(), &status) == 0 &&
         S_ISDIR(status.st_mode);
}

/// `KIND.HEX.UNIQUE`: all else may be anybody's.
bool is_mark(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos || name.rfind('.') != dot + 1 + kHexDigits) return false;
  const std::string_view kind = std::string_view(name).substr(0, dot);
  return (kind == "blob" || kind == "spliced" || kind == "tree") &&
         is_digest_name(std::string_view(name).substr(dot + 1, kHexDigits));
}

std::string read_boot_id() {
  std::string id = read_file_if_exists("/proc/sys/kernel/random/boot_id").value_or("");
  std::erase_if(id, [](char c) { return c == '\n'; });
  return id.empty() || id.find('/') != std::string::npos ? std::string(kUnknownBoot) : id;
}

std::string_view mark_name(StoreMarks::Kind kind) {
  switch (kind) {
    case StoreMarks::Kind::blob:
      return "blob";
    case StoreMarks::Kind::spliced:
      return "spliced";
    case StoreMarks::Kind::tree:
      return "tree";
  }
  return "?";
}

std::string item_name(StoreMarks::Kind kind, const Digest& digest) {
  return fmt::format("{}.{}", mark_name(kind), digest.hex());
}

}  // namespace

StoreMarks::StoreMarks(fs::path folder) : folder_(std::move(folder)), boot_id_(read_boot_id()) {
  for (const fs::path& boot : list_folder(folder_)) {
    const bool is_present = boot.filename() == boot_id_ && boot_id_ != kUnknownBoot;
    if (is_present && !is_boot_folder(boot)) {
      throw failure("not-a-store", "`{}` is not a store of mlenv", folder_.parent_path().string())
          .because(fmt::format("`{}` is a link or a file, and no folder", boot.string()))
          .hint("take it away: what is in the store is looked at again where that is needed");
    }
    if (is_present || !is_boot_folder(boot)) continue;
    const std::vector<fs::path> marks = list_folder(boot);
    // Goes with the first store that finds it empty; a mark in it makes this fail.
    if (marks.empty()) ::rmdir(boot.c_str());
    for (const fs::path& mark : marks) {
      const std::string name = mark.filename().string();
      suspects_[name.substr(0, name.rfind('.'))].push_back(mark);
    }
  }
}

void StoreMarks::add(Kind kind, const Digest& digest, std::string_view unique) const {
  const fs::path folder = folder_ / boot_id_;
  const fs::path mark = folder / fmt::format("{}.{}", item_name(kind, digest), unique);
  for (int attempt = 0;; ++attempt) {
    const Fd fd{::open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
    if (fd) {
      added_ = true;
      return;
    }
    if (errno != ENOENT || attempt > 0) throw os_error(errno, "cannot make `{}`", mark.string());
    make_own_folders(folder);
  }
}

bool StoreMarks::is_suspect(Kind kind, const Digest& digest) const {
  const std::lock_guard lock{mutex_};
  return !suspects_.empty() && suspects_.contains(item_name(kind, digest));
}

bool StoreMarks::is_still_marked(Kind kind, const Digest& digest) const {
  const std::lock_guard lock{mutex_};
  const auto found = suspects_.find(item_name(kind, digest));
  return found != suspects_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [](const fs::path& mark) { return ::access(mark.c_str(), F_OK) == 0; });
}

bool StoreMarks::is_marked(Kind kind, const Digest& digest) const {
  const std::string begin = item_name(kind, digest) + ".";
  const std::vector<fs::path> marks = current();
  return std::any_of(marks.begin(), marks.end(), [&](const fs::path& mark) {
    return mark.filename().string().starts_with(begin);
  });
}

void StoreMarks::clear(Kind kind, const Digest& digest) {
  const std::lock_guard lock{mutex_};
  const auto found = suspects_.find(item_name(kind, digest));
  if (found == suspects_.end()) return;
  for (const fs::path& mark : found->second) {
    if (::unlink(mark.c_str()) != 0 && errno != ENOENT) {
      throw os_error(errno, "cannot remove `{}`", mark.string());
    }
  }
  suspects_.erase(found);
}

std::vector<fs::path> StoreMarks::current() const {
  std::vector<fs::path> marks = list_folder(folder_ / boot_id_);
  std::erase_if(marks, [](const fs::path& mark) { return !is_mark(mark); });
  return marks;
}

}  // namespace mlenv
