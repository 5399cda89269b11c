#include "runner/local/namespaces.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>
#include <vector>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/process.hpp"
#include "runner/local/user_map.hpp"

namespace mlenv {
namespace {

// Of folders in memory that nobody else sees.
constexpr const char* kPrivateMode = "mode=0755";
constexpr unsigned long kPrivateFlags = MS_NOSUID | MS_NODEV;

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

/// Those alone stay, at the numbers `first`, `first` + 1, …; the others are closed, but for those
/// below `first`.
template <std::size_t Count>
void keep_alone(const std::array<int, Count>& descriptors, int first) {
  std::array<int, Count> high{};
  constexpr int kBeyond = 16;
  for (std::size_t i = 0; i < Count; ++i) high[i] = ::fcntl(descriptors[i], F_DUPFD, kBeyond);
  for (std::size_t i = 0; i < Count; ++i) {
    if (high[i] < 0 || ::dup2(high[i], first + static_cast<int>(i)) < 0) ::_exit(1);
  }
  close_from(first + static_cast<int>(Count));
}

/// Whoever says or asks something reaches nobody.
void empty_streams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) ::_exit(1);
  for (int fd = 0; fd < kFirstBeyondStreams; ++fd) {
    if (::dup2(null, fd) < 0) ::_exit(1);
  }
}

/// The words and variables that this program was started with lie where /proc/PID/cmdline and
/// /proc/PID/environ read them.
void forget_words() {
  const std::string stat = read_file("/proc/self/stat");
  std::istringstream fields{stat.substr(stat.rfind(')') + 4)};
  std::vector<std::uint64_t> numbers(4);  // so that they have those of proc_pid_stat(5)
  for (std::string word; fields >> word;) numbers.push_back(std::stoull(word));  // -1 as its bits
  constexpr std::size_t kEnvironmentEnd = 51;
  if (numbers.size() <= kEnvironmentEnd) return;
  prctl_mm_map map{};
  map.start_code = numbers[26];
  map.end_code = numbers[27];
  map.start_stack = numbers[28];
  map.start_data = numbers[45];
  map.end_data = numbers[46];
  map.start_brk = numbers[47];
  map.brk = reinterpret_cast<std::uintptr_t>(::sbrk(0));  // NOLINT: a number for the kernel
  map.arg_start = map.arg_end = numbers[48];
  map.env_start = map.env_end = numbers[50];
  map.exe_fd = ~0U;
  for (const std::size_t first : {48U, 50U}) {
    const std::uint64_t size = numbers[first + 1] - numbers[first];
    auto* const memory = reinterpret_cast<char*>(numbers[first]);  // NOLINT: the kernel's number
    if (memory != nullptr && numbers[first + 1] > numbers[first]) std::memset(memory, 0, size);
  }
  // Where the kernel has no such call, they stay as long as they were, of zeros.
  (void)::prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

/// 0, or errno. From here on an empty file system is all that this process and its namespace of
/// mounts have.
int leave_all_files() {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
  constexpr const char* kPlace = "/proc";  // any folder that is there
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", kPlace, "tmpfs", kFlags, "mode=0555,size=4k") != 0 || ::chdir(kPlace) != 0) {
    return errno;
  }
  // The old root comes to lie over the new one, and goes (pivot_root(2)).
  if (::syscall(SYS_pivot_root, ".", ".") == 0) {
    if (::umount2(".", MNT_DETACH) != 0) return errno;
  } else if (errno != EINVAL || ::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 ||
             ::chroot(".") != 0) {  // a root in the initial memory disk cannot be moved
    return errno;
  }
  return ::chdir("/") == 0 ? 0 : errno;
}

int drop_rights() {
  (void)!::setgroups(0, nullptr);  // not everybody may
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_DUMPABLE, 0) != 0 ||
      ::syscall(SYS_capset, &header, data.data()) != 0) {
    return errno;
  }
  return 0;
}

/// Nothing of the host's, and no right, stays with this process; 0, or errno.
int become_bare(const fs::path& network) {
  if (!network.empty()) {
    const Fd space{::open(network.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!space || ::setns(space.get(), CLONE_NEWNET) != 0) return errno;
  }
  forget_words();
  if (const int error = leave_all_files(); error != 0) return error;
  return drop_rights();
}

void wait_for_end(int lifeline) {
  char byte = 0;
  ssize_t count = 0;
  while ((count = ::read(lifeline, &byte, 1)) > 0 || (count < 0 && errno == EINTR)) {
  }
}

/// The whole life of a PID namespace's first process. The kernel reaps for a parent that ignores
/// SIGCHLD (wait(2)).
[[noreturn]] void be_init(int lifeline, int answer, const fs::path& network) noexcept {
  keep_alone(std::array{lifeline, answer}, 0);  // no streams: it has nothing (PidNamespace)
  // Nothing that a signal to our process group would do: the namespace's end is the pipe's end.
  ::setsid();
  (void)std::signal(SIGCHLD, SIG_IGN);
  ::prctl(PR_SET_NAME, "mlenv-init");
  // Not before our parent has the namespace, which it could not have of who may not be looked into.
  char byte = 0;
  while (::read(0, &byte, 1) < 0 && errno == EINTR) {
  }
  int error = EIO;
  try {
    error = become_bare(network);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the error says enough
  }
  (void)!::write(1, &error, sizeof error);
  ::close(1);
  if (error == 0) wait_for_end(0);
  ::_exit(0);
}

/// The whole life of the process that does what is left to do when the namespace's owner is killed.
/// The init sees that end, too, and the kernel then kills and reaps all that is in the namespace.
[[noreturn]] void be_guard(int lifeline, int init, const std::function<void()>& orphaned,
                           int held) noexcept {
  constexpr int kLongest = 10'000;  // milliseconds: whoever reaps there is not in our hands
  constexpr int kOwner = kFirstBeyondStreams;
  constexpr int kInit = kOwner + 1;
  empty_streams();
  keep_alone(std::array{lifeline, init, held >= 0 ? held : init}, kOwner);
  ::setsid();
  (void)std::signal(SIGCHLD, SIG_IGN);
  ::prctl(PR_SET_NAME, "mlenv-guard");
  pollfd owner{kOwner, 0, 0};
  while (::poll(&owner, 1, -1) < 0 && errno == EINTR) {
  }
  ::syscall(SYS_pidfd_send_signal, kInit, SIGKILL, nullptr, 0);
  pollfd ended{kInit, POLLIN, 0};
  while (::poll(&ended, 1, kLongest) < 0 && errno == EINTR) {
  }
  orphaned();
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
  // In few large pages (tmpfs(5)), where the kernel has them: its files are written at each start.
  const std::string options = std::string(kPrivateMode) + ",huge=within_size";
  if (::mount("tmpfs", folder.c_str(), "tmpfs", kPrivateFlags, options.c_str()) != 0) {
    mount_memory(folder);
  }
  return folder;
}

void mount_memory(const fs::path& folder, std::optional<std::uint64_t> bytes) {
  const std::string options = kPrivateMode + (bytes ? fmt::format(",size={}", *bytes) : "");
  if (::mount("tmpfs", folder.c_str(), "tmpfs", kPrivateFlags, options.c_str()) != 0) {
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

PidNamespace::PidNamespace(const fs::path& network) : owner_(::getpid()) {
  Pipe lifeline = make_pipe();
  Pipe answer = make_pipe();
  // Like fork, but the child is the first process of a new PID namespace.
  const long pid = ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) throw no_namespace(errno, "clone");
  if (pid == 0) be_init(lifeline.read_end.get(), answer.write_end.get(), network);
  init_ = static_cast<pid_t>(pid);
  lifeline_ = std::move(lifeline.write_end);
  lifeline_end_ = std::move(lifeline.read_end);
  answer_ = std::move(answer.read_end);
  try {
    space_ = open_file(fmt::format("/proc/{}/ns/pid", init_), O_RDONLY);
    (void)write_quietly(lifeline_.get(), "x");
  } catch (const Error&) {
    end();
    throw;
  }
}

void PidNamespace::settle() {
  int error = EIO;
  while (::read(answer_.get(), &error, sizeof error) < 0 && errno == EINTR) {
  }
  answer_.reset();
  if (error != 0) throw no_namespace(error, "its first process");
}

void PidNamespace::watch_over(const std::function<void()>& orphaned, int held) {
  if (orphaned) {
    const Fd init = open_pidfd(init_);
    guard_ = ::fork();
    if (guard_ < 0) throw os_error(errno, "cannot start a process");
    if (guard_ == 0) be_guard(lifeline_end_.get(), init.get(), orphaned, held);
  }
  lifeline_end_.reset();
}

std::string PidNamespace::path() const { return fmt::format("/proc/{}/fd/{}", owner_, fd()); }

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
  bool told = false;  // dead, which may be a moment before it can be reaped
  while (init_ > 0) {
    const pid_t ended = ::waitpid(-1, nullptr, gone ? WNOHANG : 0);
    if (ended == guard_) guard_ = -1;
    if (ended == init_ || (ended < 0 && errno != EINTR)) init_ = -1;
    if (ended != 0) continue;
    if (Clock::now() >= until) return leave();
    constexpr int kPause = 20;  // milliseconds: others are reaped, too, for which it waits
    pollfd one{gone.get(), POLLIN, 0};
    if (told) {
      ::poll(nullptr, 0, 1);
    } else {
      told = ::poll(&one, 1, kPause) > 0;
    }
  }
  // Not before: were this process killed meanwhile, it would have its work to do. Nobody waits for
  // its end, which is reaped with those of a next namespace, or of this process.
  if (guard_ > 0) ::kill(std::exchange(guard_, -1), SIGKILL);
}

void PidNamespace::leave() noexcept {
  kill();
  init_ = -1;
  lifeline_.reset();
}

}  // namespace mlenv
