// The first process of a virtual machine that runs an image: it loads modules, puts the image's
// file system together, starts the keeper in it (runner/engine/keeper) and passes on what is said
// to that over a serial port, until the other end has no more to say.
//
// Linked statically, without exceptions: it is all that there is in the initial RAM disk beside the
// keeper and the kernel's modules.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/descriptors.hpp"
#include "runner/vm/guest/places.hpp"
#include "runner/vm/link.hpp"

namespace mlenv::vm {
namespace {

/// In the image's own /dev, until the keeper has found it.
constexpr const char* kKeeperSocket = "/dev/mlenv-keeper";

[[noreturn]] void power_off() {
  sync_shares();
  ::reboot(RB_POWER_OFF);
  // Without power management: q35 resets, and mlenv has told QEMU not to start again.
  ::reboot(RB_AUTOBOOT);
  std::_Exit(1);
}

std::string read_text(const char* path) {
  std::string text;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (fd >= 0) ::close(fd);
  return text;
}

/// In the order of the list, which is that of their dependencies. One that this machine has no
/// device for is no failure.
void load_modules() {
  const std::string list = read_text("/modules/list");
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = list.find('\n', at);
    const std::string path = "/modules/" + list.substr(at, end - at);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) (void)::syscall(SYS_finit_module, fd, "", 0);
    if (fd >= 0) ::close(fd);
    if (end == std::string::npos) break;
    at = end + 1;
  }
}

/// The driver makes it known in its own time.
int open_port() {
  constexpr int kTries = 2000;
  constexpr int kPause = 5;  // milliseconds
  for (int tries = 0; tries < kTries; ++tries) {
    for (int port = 0; port < 4; ++port) {
      const std::string name = "vport" + std::to_string(port);
      for (int number = 0; number < 4; ++number) {
        const std::string full = name + "p" + std::to_string(number);
        const std::string said = read_text(("/sys/class/virtio-ports/" + full + "/name").c_str());
        if (said != std::string(kPortName) + "\n") continue;
        return ::open(("/dev/" + full).c_str(), O_RDWR | O_CLOEXEC);
      }
    }
    ::poll(nullptr, 0, kPause);
  }
  return -1;
}

std::string memory_kills() {
  constexpr std::string_view kLine = "\noom_kill ";
  const std::string counts = read_text("/proc/vmstat");
  const std::size_t at = counts.find(kLine);
  if (at == std::string::npos) return "0";
  const std::size_t begin = at + kLine.size();
  return counts.substr(begin, counts.find('\n', begin) - begin);
}

int listen_for_keeper() {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, kKeeperSocket, sizeof address.sun_path - 1);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: bind(2)'s way
  if (::bind(fd, plain, sizeof address) != 0 || ::listen(fd, 1) != 0) return -1;
  return fd;
}

/// The first process of a PID namespace, in the image's root. Its program lies outside that.
[[noreturn]] void be_keeper(int program) {
  ::setsid();
  for (const int number : {SIGPIPE, SIGINT, SIGTERM}) (void)std::signal(number, SIG_DFL);
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, nullptr) != 0) {
    std::_Exit(1);
  }
  std::array<char*, 3> words{const_cast<char*>("keeper"),  // NOLINT: as execve(2) has it
                             const_cast<char*>(kKeeperSocket), nullptr};  // NOLINT
  std::array<char*, 1> none{nullptr};
  close_on_exec_from(kFirstBeyondStreams);
  ::fexecve(program, words.data(), none.data());
  std::_Exit(1);
}

pid_t start_keeper(int program) {
  const long pid = ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) be_keeper(program);
  return static_cast<pid_t>(pid);
}

/// Tells why, and waits to be ended.
[[noreturn]] void give_up(Link& link, const std::string& why) {
  link.send(Kind::failed, why);
  link.flush();
  power_off();
}

/// Between the port and the keeper.
void serve(int port) {
  const int program = ::open("/keeper", O_RDONLY | O_CLOEXEC);
  {
    Link first{Side::guest, {port, -1, -1}};
    const std::optional<std::string> setup = first.expect(Kind::setup);
    if (!setup) power_off();
    const std::string problem = make_places(*setup);
    if (!problem.empty()) give_up(first, problem);
  }
  const int listener = listen_for_keeper();
  const pid_t keeper = start_keeper(program);
  const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  (void)::unlink(kKeeperSocket);
  ::close(listener);
  ::close(program);
  Link link{Side::guest, {port, socket, -1}, {seal_image, memory_kills}};
  if (!link.run()) power_off();
  if (keeper > 0) ::kill(keeper, SIGKILL);
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  sync_shares();
  link.send(Kind::bye, "");
  link.flush();
}

int begin() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)::mkdir("/proc", 0755);
  (void)::mkdir("/sys", 0755);
  (void)::mkdir("/dev", 0755);
  (void)::mount("proc", "/proc", "proc", 0, nullptr);
  (void)::mount("sysfs", "/sys", "sysfs", 0, nullptr);
  (void)::mount("devtmpfs", "/dev", "devtmpfs", 0, nullptr);
  if (!standard_streams()) power_off();
  load_modules();
  const int port = open_port();
  if (port < 0) {
    constexpr std::string_view kWhy = "mlenv: this kernel has no driver for the serial port\n";
    (void)!::write(STDERR_FILENO, kWhy.data(), kWhy.size());  // the console
    power_off();
  }
  serve(port);
  power_off();
}

}  // namespace
}  // namespace mlenv::vm

int main() { return mlenv::vm::begin(); }
