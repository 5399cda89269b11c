#include "base/sandbox/process_limit.hpp"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <charconv>
#include <string_view>

#include "base/handle.hpp"

namespace mlenv::sandbox {

namespace {

/// Before that the file is the whole machine's, which root may write to.
bool is_of_the_namespace() {
  struct utsname machine {};
  int major = 0;
  int minor = 0;
  if (::uname(&machine) != 0) return false;
  const std::string_view release{machine.release};
  const char* const end = release.data() + release.size();
  const auto [dot, error] = std::from_chars(release.data(), end, major);
  if (error != std::errc{} || dot == end || *dot != '.') return false;
  (void)std::from_chars(dot + 1, end, minor);
  return major > 6 || (major == 6 && minor >= 14);
}

}  // namespace

void limit_process_ids(int proc) noexcept {
  if (!is_of_the_namespace()) return;
  constexpr std::string_view kMost = "8192";
  static_assert(kProgramProcesses == 8192);
  const Fd file{::openat(proc, "sys/kernel/pid_max", O_WRONLY | O_CLOEXEC)};
  if (file) (void)!::write(file.get(), kMost.data(), kMost.size());
}

}  // namespace mlenv::sandbox
