#include "images/store_mark.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "base/own_entries.hpp"
#include "base/text.hpp"
#include "images/store_strangers.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kMarkText =
    "This folder is a store of mlenv, which makes and removes files in it.\n";

bool is_folder(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_file(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// A version's number, or what a power cut left of it.
bool is_version_file(const fs::path& path) {
  constexpr std::size_t kMost = 32;
  const Fd fd{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!fd) return false;
  FdSource source{fd.get()};
  try {
    const std::string text = read_all(source, kMost);
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return is_digit(c) || c == '\n' || c == '\0'; });
  } catch (const Error&) {
    return false;
  }
}

/// What an earlier mlenv made: its version and its folders, of which somebody may have removed an
/// empty one.
bool has_shape_of_store(const fs::path& root) {
  constexpr std::ptrdiff_t kLeast = 5;
  if (!is_version_file(root / "version")) return false;
  const auto there = std::count_if(kStoreFolders.begin(), kStoreFolders.end(),
                                   [&](const char* name) { return is_folder(root / name); });
  return there >= kLeast;
}

bool is_record_name(std::string_view name) {
  return is_time_name(name) || name == ".names" || name == ".order" || name.starts_with(".new-");
}

/// What an mlenv, or somebody who saved it, put into a store before the store itself was made.
bool is_older_than_store(const fs::path& entry) {
  const std::string name = entry.filename().string();
  if (name == "lost+found" || name == kStoreMark) return true;  // a disk's own, and another mlenv's
  if (name == "cuda.toml" || name.starts_with(".tmp-")) return is_file(entry);
  if (name != "runs" || !is_folder(entry)) return false;
  const std::vector<fs::path> records = list_folder(entry);
  return !records.empty() &&
         std::all_of(records.begin(), records.end(), [](const fs::path& record) {
           return is_record_name(record.filename().string());
         });
}

bool may_become_store(const fs::path& root) {
  const std::vector<fs::path> entries = list_folder(root);
  return std::all_of(entries.begin(), entries.end(), is_older_than_store);
}

Error not_a_store(const fs::path& root, std::string why) {
  return failure("not-a-store", "`{}` is not a store of mlenv", root.string())
      .because(std::move(why))
      .hint("set MLENV_STORE to a folder that is empty, or to one that is not there yet");
}

/// False: this process may not write there.
bool write_mark(const fs::path& root) {
  const fs::path mark = root / kStoreMark;
  const Fd fd{::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)};
  if (!fd) {
    if (errno == EEXIST) return true;  // another mlenv's, just now
    if (errno == EACCES || errno == EROFS || errno == EPERM) return false;
    throw os_error(errno, "cannot make `{}`", mark.string());
  }
  write_all(fd.get(), as_bytes(kMarkText));
  return true;
}

void require_folder(const fs::path& root, const char* name) {
  const fs::path path = root / name;
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    throw os_error(errno, "cannot make the folder `{}`", path.string());
  }
  if (is_folder(path)) return;
  throw not_a_store(root, fmt::format("`{}` is a link or a file, and no folder", path.string()));
}

}  // namespace

void settle_store_folder(const fs::path& root) {
  make_own_folders(root);
  if (!is_file(root / kStoreMark)) {
    const bool is_old = has_shape_of_store(root);
    // Another mlenv may be making it one.
    if (!is_old && !may_become_store(root) && !is_file(root / kStoreMark)) {
      throw not_a_store(root, "it holds other files, and not what a store consists of");
    }
    if (!write_mark(root) && !is_old) {
      throw os_error(EACCES, "cannot make `{}`", (root / kStoreMark).string());
    }
  }
  for (const char* name : kStoreFolders) require_folder(root, name);
  shut_others_out(root);
}

}  // namespace mlenv
