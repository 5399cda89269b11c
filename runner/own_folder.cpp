#include "runner/own_folder.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <ctime>

#include <fmt/core.h>

#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{16} << 20U;

bool is_own_regular(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
}

bool is_ours_by_name(std::string_view name) {
  constexpr std::size_t kDigits = 64;
  const std::string_view digits = name.substr(0, kDigits);
  return digits.size() == kDigits && std::all_of(digits.begin(), digits.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

OwnFolder::OwnFolder(const fs::path& path) {
  try {
    make_folders(path.parent_path());
    (void)::mkdir(path.c_str(), S_IRWXU);  // there already is fine; all else shows below
    Fd fd = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct stat info {};
    const bool is_own = ::fstat(fd.get(), &info) == 0 && info.st_uid == ::geteuid() &&
                        (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (is_own) {
      fd_ = std::move(fd);
    } else {
      log::debug("nothing is remembered in `{}`: others may write to it", path.string());
    }
  } catch (const Error& error) {
    log::debug("nothing is remembered: {}", error.what());
  }
}

fs::path OwnFolder::inside() const { return descriptor_path(fd_); }

std::optional<std::string> OwnFolder::read(const std::string& name) const {
  if (!fd_) return std::nullopt;
  const Fd file{::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !is_own_regular(info)) return std::nullopt;
  try {
    FdSource source{file.get()};
    return read_all(source, kMostFileBytes);
  } catch (const Error& error) {
    log::debug("`{}` is not remembered: {}", name, error.what());
    return std::nullopt;
  }
}

void OwnFolder::write(const std::string& name, std::string_view text) const {
  if (!fd_) return;
  try {
    write_file(inside() / name, text, /*durable=*/false);
  } catch (const Error& error) {
    log::debug("`{}` is not remembered: {}", name, error.what());
  }
}

void OwnFolder::forget_older_than(std::chrono::hours age) const {
  if (!fd_) return;
  const std::time_t oldest =
      std::time(nullptr) - std::chrono::duration_cast<std::chrono::seconds>(age).count();
  for (const fs::path& path : list_folder(inside())) {
    const std::string name = path.filename().string();
    struct stat info {};
    if (!is_ours_by_name(name) ||
        ::fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (is_own_regular(info) && info.st_mtime < oldest) ::unlinkat(fd_.get(), name.c_str(), 0);
  }
}

}  // namespace mlenv
