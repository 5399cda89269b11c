#include "base/sandbox/read_own.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/sandbox/sandbox.hpp"

namespace mlenv {
namespace {

void write_namespace_setting(const char* path, const std::string& text) {
  const Fd fd = open_file(path, O_WRONLY);
  write_all(fd.get(), as_bytes(text));
}

void keep_one_capability(unsigned capability) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  sets[0].effective = sets[0].permitted = 1U << capability;
  if (::syscall(SYS_capset, &header, sets.data()) != 0) {
    throw os_error(errno, "cannot give up capabilities");
  }
}

}  // namespace

bool read_own_past_modes() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (user == 0) return true;
  try {
    // Tried by another process first: there is no way back out of a namespace that cannot be set
    // up.
    require_sandbox();
  } catch (const Error& error) {
    log::debug("modes of one's own files are heeded: {}", error.what());
    return false;
  }
  if (::unshare(CLONE_NEWUSER) != 0) {
    log::debug("modes of one's own files are heeded: unshare: {}", errno_text(errno));
    return false;
  }
  write_namespace_setting("/proc/self/setgroups", "deny");
  write_namespace_setting("/proc/self/uid_map", fmt::format("{0} {0} 1", user));
  write_namespace_setting("/proc/self/gid_map", fmt::format("{0} {0} 1", group));
  keep_one_capability(CAP_DAC_READ_SEARCH);
  return true;
}

}  // namespace mlenv
