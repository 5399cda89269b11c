#include "runner/vm/machine.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/text.hpp"
#include "runner/local/life.hpp"
#include "runner/local/namespaces.hpp"
#include "runner/vm/guest_files.hpp"
#include "runner/vm/link.hpp"

namespace mlenv {
namespace {

/// What is kept of what the console and QEMU say, in bytes: a guest that says more is not heard.
constexpr std::uint64_t kMostConsoleBytes = std::uint64_t{512} << 10U;
/// The link's own time for a good-bye (link.cpp), and some more.
constexpr int kGoodBye = 25'000;  // milliseconds

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
  close_from(2 * kKept);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kKept; ++fd) ::dup2(null, fd);
  vm::Link link{vm::Side::host, {kKept, kKept + 1, kKept + 2}};
  link.send(vm::Kind::setup, setup);
  ::_exit(link.run() ? 0 : 1);
}

/// Of what a guest or QEMU said.
constexpr std::size_t kMostConsoleShown = 300;

std::string last_lines(const std::string& text) {
  const std::string_view all = trim(text);
  return std::string(all.size() > kMostConsoleShown ? all.substr(all.size() - kMostConsoleShown)
                                                    : all);
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
    : folder_(folder), said_(folder / "said") {
  make_folders(said_);
  mount_memory(said_, kMostConsoleBytes);
  machine.console = fs::absolute(said_) / "console";
  machine.port = 3;
  machine.scratch = 4;
  SocketPair port = socket_pair();
  const Fd words = open_file(said_ / "qemu", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Command command{Purpose{"virtual-machine"}};
  command.argv = qemu_words(machine);
  command.folder = fs::absolute(said_);  // QEMU takes firmware that lies in its folder for its own
  command.stdout_fd = command.stderr_fd = words.get();
  command.extra_fds = {{port.theirs.get(), machine.port}, {scratch, machine.scratch}};
  {
    const StartedWithoutGroups lesser;
    qemu_.emplace(command);
  }
  qemu_ended_ = open_pidfd(qemu_->pid());
  start_link(port.ours.get(), setup);
  wait_.answer = keeper_.fd();
  wait_.ended = {qemu_ended_.get(), link_ended_.get()};
  keeper_.before_waiting([this] {
    heard_ = wait_for_guest(wait_);
    return heard_ == Heard::answer;
  });
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

void VirtualMachine::wait_with(const GuestWatch& watch, std::chrono::milliseconds patience) {
  wait_.watch = watch;
  wait_.patience = patience;
}

Heard VirtualMachine::boot(const GuestWatch& watch, std::chrono::milliseconds patience) {
  wait_with(watch, patience);
  try {
    (void)keeper_.hello();
    return Heard::answer;
  } catch (const Error&) {
    return heard_ == Heard::answer ? Heard::end : heard_;
  }
}

std::string VirtualMachine::said_by_kernel() const {
  return read_file_if_exists(said_ / "console").value_or("");
}

std::string VirtualMachine::said_by_qemu() const {
  return last_lines(read_file_if_exists(said_ / "qemu").value_or(""));
}

std::string VirtualMachine::why() const {
  if (std::string words = noted(folder_ / "notes", vm::kNoteFailed); !words.empty()) return words;
  if (std::string qemu = said_by_qemu(); !qemu.empty()) return qemu;
  const std::string kernel = last_lines(said_by_kernel());
  return kernel.empty() ? "it does not say why" : kernel;
}

std::string VirtualMachine::end() {
  // Its socket may be closed a moment before it is gone.
  const std::optional<Exit> exit = qemu_->wait(std::chrono::seconds{2});
  if (exit && exit->signalled) {
    return "QEMU was ended by " + signal_name(exit->code - kSignalBase);
  }
  const std::string kernel = said_by_kernel();
  if (const std::size_t at = kernel.find("Kernel panic - "); at != std::string::npos) {
    const std::string line =
        kernel.substr(at, std::min(kernel.find('\n', at) - at, kMostConsoleShown));
    return fmt::format("its kernel says: {}", trim(line));
  }
  const std::string qemu = said_by_qemu();
  return qemu.empty() ? "it was shut down from within" : qemu;
}

std::uint64_t VirtualMachine::memory_kills() const {
  const std::string count = noted(folder_ / "notes", vm::kNoteMemory);
  return count.empty() ? 0 : std::strtoull(count.c_str(), nullptr, 10);
}

int VirtualMachine::lost_output() const {
  return static_cast<int>(
      std::strtol(noted(folder_ / "notes", vm::kNoteOutput).c_str(), nullptr, 10));
}

bool VirtualMachine::lost_writes() const {
  // The guest's kernel says so of its second disk; a program learns of it only by fsync(2).
  return said_by_kernel().find("I/O error, dev vdb") != std::string::npos;
}

VirtualMachine::~VirtualMachine() {
  // The link says good-bye to the guest, and ends when that has.
  keeper_.close();
  if (link_ <= 0) return;
  const bool is_gone = qemu_->wait(std::chrono::milliseconds{0}).has_value();
  pollfd ended{link_ended_.get(), POLLIN, 0};
  if (has_worked_ && heard_ != Heard::nothing && !is_gone) (void)::poll(&ended, 1, kGoodBye);
  ::kill(link_, SIGKILL);
  int status = 0;
  while (::waitpid(link_, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace mlenv
