#include "runner/local/namespaces.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/user_map.hpp"

namespace mlenv {
namespace {

bool file_says(const char* path, char first) {
  const std::optional<std::string> text = read_file_if_exists(path);
  return text && !text->empty() && text->front() == first;
}

Error no_namespace(int error, const char* what) {
  Error refusal = failure("no-namespace", "cannot make a namespace for the container");
  refusal.because(std::string(what) + ": " + errno_text(error));
  if (file_says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1')) {
    return std::move(refusal).hint(
        "AppArmor keeps ordinary users from it here: let root give mlenv its AppArmor profile, as "
        "its "
        "Debian package does (docs/sandbox.md), or run `sysctl -w "
        "kernel.apparmor_restrict_unprivileged_userns=0`; or run as root");
  }
  if (file_says("/proc/sys/kernel/unprivileged_userns_clone", '0')) {
    return std::move(refusal).hint(
        "let root run `sysctl -w kernel.unprivileged_userns_clone=1`, or run as root");
  }
  if (error == ENOSPC || file_says("/proc/sys/user/max_user_namespaces", '0')) {
    return std::move(refusal).hint(
        "let root run `sysctl -w user.max_user_namespaces=15000`, or run as root");
  }
  return std::move(refusal).hint(
      "inside another container, start that one with the right to make namespaces (docker: "
      "`--privileged`)");
}

void write_kernel_file(const char* path, const std::string& text) {
  const Fd fd{::open(path, O_WRONLY | O_CLOEXEC)};
  if (!fd || ::write(fd.get(), text.data(), text.size()) < 0) throw no_namespace(errno, path);
}

/// A user namespace that maps nothing but the caller (user_namespaces(7)): needs no subuids.
void enter_user_namespace() {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  unshare_user_and_mounts();
  write_kernel_file("/proc/self/setgroups", "deny");
  write_kernel_file("/proc/self/uid_map", "0 " + uid + " 1");
  write_kernel_file("/proc/self/gid_map", "0 " + gid + " 1");
}

/// The first user namespace maps every id to itself: `0 0 4294967295`.
bool in_first_user_namespace() {
  const std::string map = read_file("/proc/self/uid_map");
  return map.find("4294967295") != std::string::npos;
}

/// Of the namespace that we are the first of; more than once, for those that are being made. Those
/// that ended cannot be told from them: their parent, outside, may be slow to reap them.
void kill_all_others() {
  constexpr int kTries = 3;
  constexpr int kPause = 10;  // milliseconds
  for (int tries = 0; tries < kTries && ::kill(-1, SIGKILL) == 0; ++tries)
    ::poll(nullptr, 0, kPause);
}

/// The whole life of a PID namespace's first process. The kernel reaps for a parent that ignores
/// SIGCHLD (wait(2)).
[[noreturn]] void be_init(int lifeline, const std::function<void()>& orphaned, int held) {
  ::dup2(lifeline, 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, 1);
  ::dup2(null, 2);
  if (held > 3) ::dup2(held, 3);
  ::close_range(held >= 3 ? 4 : 3, ~0U, 0);
  // Nothing that a signal to our process group would do: the namespace's end is the pipe's end.
  ::setsid();
  (void)std::signal(SIGCHLD, SIG_IGN);
  ::prctl(PR_SET_NAME, "mlenv-init");
  char byte = 0;
  while (::read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  if (orphaned) {
    kill_all_others();
    orphaned();
  }
  ::_exit(0);
}

/// In a new network namespace: its loopback is switched on, and it is mounted at `file`. 0, or
/// errno.
int keep_network(const char* file) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback{};
  std::memcpy(loopback.ifr_name, "lo", 3);
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;  // NOLINT: a union of ioctl(2)
  if (fd < 0 || ::ioctl(fd, SIOCSIFFLAGS, &loopback) != 0) return errno;
  return ::mount("/proc/self/ns/net", file, nullptr, MS_BIND, nullptr) == 0 ? 0 : errno;
}

}  // namespace

void unshare_user_and_mounts() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) throw no_namespace(errno, "unshare");
}

Identity enter_namespaces(const std::optional<ContainerUser>& shown_as) {
  Identity identity = Identity::single_id;
  if (shown_as) {
    enter_mapped_namespace(*shown_as);
    identity = Identity::kept_id;
  } else if (::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0) {
    identity = in_first_user_namespace() ? Identity::root : Identity::mapped;
  } else {
    enter_user_namespace();
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    throw no_namespace(errno, "mount");
  }
  return identity;
}

// (On a disk, making and removing what lies in it is a good part of the start-up time.)
fs::path mount_private_folder(const fs::path& scratch) {
  fs::path folder = scratch / "run";
  make_folders(folder);
  mount_memory(folder);
  return folder;
}

void mount_memory(const fs::path& folder, std::optional<std::uint64_t> bytes) {
  const std::string options = "mode=0755" + (bytes ? fmt::format(",size={}", *bytes) : "");
  if (::mount("tmpfs", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    throw failure("no-namespace", "cannot mount a tmpfs on `{}`", folder.string())
        .because(errno_text(errno));
  }
}

void make_network_namespace(const fs::path& file) {
  write_file(file, "", false);
  // A child, since an ordinary user cannot go back to the host's.
  const long pid = ::syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) throw no_namespace(errno, "clone");
  if (pid == 0) ::_exit(keep_network(file.c_str()));
  int status = 0;
  while (::waitpid(static_cast<pid_t>(pid), &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw no_namespace(WEXITSTATUS(status), "network namespace");
}

PidNamespace::PidNamespace(const std::function<void()>& orphaned, int held) {
  Pipe pipe = make_pipe();
  // Like fork, but the child is the first process of a new PID namespace.
  const long pid = ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) throw no_namespace(errno, "clone");
  if (pid == 0) be_init(pipe.read_end.get(), orphaned, held);
  init_ = static_cast<pid_t>(pid);
  lifeline_ = std::move(pipe.write_end);
}

void PidNamespace::kill() noexcept {
  if (init_ > 0) ::kill(init_, SIGKILL);
}

void PidNamespace::end() noexcept {
  kill();
  if (init_ <= 0) return;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kMostDying{30};
  const auto until = Clock::now() + kMostDying;
  const Fd gone{static_cast<int>(::syscall(SYS_pidfd_open, init_, 0))};
  while (init_ > 0) {
    const pid_t ended = ::waitpid(-1, nullptr, gone ? WNOHANG : 0);
    if (ended == init_ || (ended < 0 && errno != EINTR)) init_ = -1;
    if (ended != 0) continue;
    if (Clock::now() >= until) return leave();
    constexpr int kPause = 20;  // milliseconds: others are reaped, too, for which it waits
    pollfd one{gone.get(), POLLIN, 0};
    // It may be told as dead a moment before it can be reaped.
    if (::poll(&one, 1, kPause) > 0) ::poll(nullptr, 0, 1);
  }
}

void PidNamespace::leave() noexcept {
  kill();
  init_ = -1;
  lifeline_.reset();
}

}  // namespace mlenv
