#include "runner/compare/shield.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

#include <fmt/core.h>

#include "base/error.hpp"

namespace mlenv::compare {
namespace {

std::string refused(const char* what) { return fmt::format("{}: {}", what, errno_text(errno)); }

void put_setting(const char* file, const std::string& text) {
  const Fd fd = open_file(file, O_WRONLY);
  if (::write(fd.get(), text.data(), text.size()) < 0) {
    throw os_error(errno, "cannot write `{}`", file);
  }
}

/// Of root the mounts alone: in a user namespace it would be root of its own files only.
std::string leave_mounts() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return refused("unshare");
  }
  if (user == 0) return "";
  try {
    put_setting("/proc/self/setgroups", "deny");
    put_setting("/proc/self/uid_map", fmt::format("{0} {0} 1", user));
    put_setting("/proc/self/gid_map", fmt::format("{0} {0} 1", group));
  } catch (const Error& error) {
    return error.frames().back();
  }
  return "";
}

}  // namespace

std::string shield(const fs::path& folder) {
  if (std::string why = leave_mounts(); !why.empty()) return why;
  // What is mounted on the host later is seen, and nothing of ours is seen there.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return refused("mount");
  if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return refused("mount");
  }
  mount_attr wanted{};
  wanted.attr_set = MOUNT_ATTR_RDONLY;  // and what else holds of the mount stays
  if (::syscall(SYS_mount_setattr, AT_FDCWD, folder.c_str(), 0U, &wanted, sizeof wanted) != 0) {
    return refused("mount_setattr");
  }
  return "";
}

}  // namespace mlenv::compare
