#include "runner/vm/machine.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/text.hpp"
#include "runner/local/life.hpp"
#include "runner/local/signals.hpp"
#include "runner/vm/link.hpp"

namespace mlenv {
namespace {

struct SocketPair {
  Fd ours;
  Fd theirs;
};
SocketPair socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  return {Fd{ends[0]}, Fd{ends[1]}};
}

/// It keeps none of the stage's files, which tell others that that lives.
[[noreturn]] void be_link(int port, int socket, int notes, const std::string& setup) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "mlenv-vm");
  // Signals are the stage's to pass on; a terminal that we may not read is at its end for us.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (const int number : {SIGPIPE, SIGTTIN, SIGTTOU}) (void)std::signal(number, SIG_IGN);
  constexpr int kKept = 3;
  std::array<int, kKept> fds{port, socket, notes};
  // Out of the way first: each may lie where another is to go.
  constexpr int kHigh = 100;
  for (int& fd : fds) fd = ::fcntl(fd, F_DUPFD_CLOEXEC, kHigh);
  for (int i = 0; i < kKept; ++i) ::dup3(fds[static_cast<std::size_t>(i)], kKept + i, O_CLOEXEC);
  ::close_range(2 * kKept, ~0U, 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kKept; ++fd) ::dup2(null, fd);
  vm::Link link{vm::Side::host, {kKept, kKept + 1, kKept + 2}};
  link.send(vm::Kind::setup, setup);
  ::_exit(link.run() ? 0 : 1);
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t kMost = 300;
  const std::string_view all = trim(text);
  return std::string(all.size() > kMost ? all.substr(all.size() - kMost) : all);
}

/// What lines of the notes say that begin so; the last one counts.
std::string noted(const fs::path& notes, std::string_view kind) {
  std::string found;
  const std::string text = read_file_if_exists(notes).value_or("");
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with(kind)) found = line.substr(kind.size());
  }
  return found;
}

}  // namespace

VirtualMachine::VirtualMachine(QemuMachine machine, const fs::path& folder,
                               const std::string& setup, int scratch)
    : folder_(folder) {
  make_folders(folder_);
  machine.console = folder_ / "console";
  machine.port = 3;
  machine.scratch = 4;
  SocketPair port = socket_pair();
  const Fd words = open_file(folder_ / "qemu", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Command command;
  command.argv = qemu_words(machine);
  command.stdout_fd = command.stderr_fd = words.get();
  command.extra_fds = {{port.theirs.get(), machine.port}, {scratch, machine.scratch}};
  qemu_.emplace(command);
  start_link(port.ours.get(), setup);
}

void VirtualMachine::start_link(int port, const std::string& setup) {
  SocketPair socket = socket_pair();
  const Fd notes = open_file(folder_ / "notes", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  link_ = ::fork();
  if (link_ < 0) throw os_error(errno, "cannot start a process");
  if (link_ == 0) be_link(port, socket.theirs.get(), notes.get(), setup);
  link_ended_ = open_pidfd(link_);
  keeper_ = Keeper{std::move(socket.ours)};
}

void VirtualMachine::take_signals(int signals) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGUSR1 && number != SIGUSR2) signal_ = number;
  }
}

VirtualMachine::Boot VirtualMachine::wait(const BootWatch& watch) {
  const Fd qemu_ended = open_pidfd(qemu_->pid());
  const auto until = std::chrono::steady_clock::now() + watch.patience;
  while (true) {
    std::array<pollfd, 5> fds{{{keeper_.fd(), POLLIN, 0},
                               {qemu_ended.get(), POLLIN, 0},
                               {link_ended_.get(), POLLIN, 0},
                               {watch.signals, POLLIN, 0},
                               {watch.socket, 0, 0}}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Boot::too_slow;
    if (::poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the virtual machine");
    }
    if (fds[4].revents != 0) throw failure("run-failed", "mlenv was killed");
    if (fds[3].revents != 0) take_signals(watch.signals);
    if (signal_ != 0) return Boot::signalled;
    if (fds[1].revents != 0 || fds[2].revents != 0) return Boot::failed;
    if (fds[0].revents != 0) break;
  }
  try {
    (void)keeper_.hello();
    is_up_ = true;
    return Boot::done;
  } catch (const Error&) {
    return Boot::failed;
  }
}

std::string VirtualMachine::why() const {
  if (std::string words = noted(folder_ / "notes", vm::kNoteFailed); !words.empty()) return words;
  std::string qemu = last_lines(read_file_if_exists(folder_ / "qemu").value_or(""));
  if (!qemu.empty()) return qemu;
  const std::string console = last_lines(read_file_if_exists(folder_ / "console").value_or(""));
  return console.empty() ? "it does not say why" : console;
}

std::string VirtualMachine::end() {
  // Its socket may be closed a moment before it is gone.
  const std::optional<Exit> exit = qemu_->wait(std::chrono::seconds{2});
  if (exit && exit->signalled) {
    constexpr int kSignalled = 128;
    return "QEMU was ended by " + signal_name(exit->code - kSignalled);
  }
  const std::string console = read_file_if_exists(folder_ / "console").value_or("");
  if (const std::size_t at = console.find("Kernel panic - "); at != std::string::npos) {
    return fmt::format("its kernel says: {}",
                       trim(console.substr(at, console.find('\n', at) - at)));
  }
  const std::string qemu = last_lines(read_file_if_exists(folder_ / "qemu").value_or(""));
  return qemu.empty() ? "it was shut down from within" : qemu;
}

std::uint64_t VirtualMachine::memory_kills() const {
  const std::string count = noted(folder_ / "notes", vm::kNoteMemory);
  return count.empty() ? 0 : std::strtoull(count.c_str(), nullptr, 10);
}

bool VirtualMachine::lost_writes() const {
  // The guest's kernel says so of its second disk; a program learns of it only by fsync(2).
  const std::string console = read_file_if_exists(folder_ / "console").value_or("");
  return console.find("I/O error, dev vdb") != std::string::npos;
}

VirtualMachine::~VirtualMachine() {
  // The link says good-bye to the guest, and ends when that has.
  keeper_.close();
  if (link_ <= 0) return;
  int status = 0;
  const bool qemu_is_gone = qemu_->wait(std::chrono::milliseconds{0}).has_value();
  if (!is_up_ || qemu_is_gone) ::kill(link_, SIGKILL);
  while (::waitpid(link_, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace mlenv
