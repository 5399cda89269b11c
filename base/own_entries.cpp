#include "base/own_entries.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv {

bool has_temporary_name(std::string_view name, std::string_view prefix) {
  constexpr std::size_t kRandom = 12;
  if (!name.starts_with(prefix) || name.size() != prefix.size() + kRandom) return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); });
}

bool is_digest_name(std::string_view name) {
  constexpr std::size_t kDigits = 64;
  return name.size() == kDigits && std::all_of(name.begin(), name.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'f');
         });
}

bool is_time_name(std::string_view name) {
  constexpr std::string_view kForm = "dddddddd-dddddd-hhhhhh";
  return name.size() == kForm.size() &&
         std::equal(name.begin(), name.end(), kForm.begin(), [](char c, char form) {
           if (form == '-') return c == '-';
           return is_digit(c) || (form == 'h' && c >= 'a' && c <= 'f');
         });
}

std::optional<struct stat> own_status(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return std::nullopt;
  return status;
}

bool is_own_folder(const fs::path& path) {
  const auto status = own_status(path);
  return status && S_ISDIR(status->st_mode);
}

bool is_own_file(const fs::path& path) {
  const auto status = own_status(path);
  return status && S_ISREG(status->st_mode);
}

void make_own_folders(const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  const fs::path plain = path.has_filename() ? path : path.parent_path();
  if (plain.has_parent_path() && plain.parent_path() != plain) {
    make_own_folders(plain.parent_path());
  }
  if (::mkdir(plain.c_str(), 0755) == 0) return;
  const int why = errno;
  if (why == EEXIST && fs::is_directory(path, error)) return;  // another process was faster
  throw os_error(why == EEXIST ? ENOTDIR : why, "cannot make the folder `{}`", path.string());
}

}  // namespace mlenv
