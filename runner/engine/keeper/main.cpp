// The first process of a container that an engine (docker, podman) runs for mlenv: it starts the
// command with the very streams that mlenv has, passes signals on, reaps, and tells how the command
// ended. When mlenv is gone, its end of the socket closes; this process then ends, and the kernel
// ends all others of the container with it: so not even `kill -9` of mlenv leaves one running.
//
// Linked statically against the C library alone, for it runs in any image. Usage: keeper SOCKET
//
// And, with other words, the first program of a container that mlenv makes itself (enter.hpp):
// keeper enter FILTER make|need FOLDER PROGRAM [ARGUMENT…]
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/descriptors.hpp"
#include "runner/engine/keeper/clean.hpp"
#include "runner/engine/keeper/enter.hpp"
#include "runner/engine/keeper/files.hpp"
#include "runner/engine/keeper/frames.hpp"
#include "runner/engine/keeper/processes.hpp"

namespace mlenv::keeper {
namespace {

constexpr std::size_t kMostChannels = 256;

/// mlenv's end of it asks for one process; the first channel's for the job.
struct Channel {
  int fd = -1;
  pid_t pid = -1;
};
std::array<Channel, kMostChannels> channels;  // NOLINT: the program's state

void start(Channel& channel, const Frame& frame) {
  Failed problem;
  Terminal terminal;
  const StartHead head = Reader{frame}.take<StartHead>();
  const bool is_job = &channel == channels.data();
  if (!is_job && channels[0].pid <= 0) problem.error = ESRCH;  // over meanwhile
  if (problem.error == 0 && (head.flags & StartHead::kTerminal) != 0)
    problem.error = open_terminal(head, terminal);
  if (problem.error == 0) channel.pid = start_process(frame, terminal, problem);
  if (problem.error == 0) {
    say(channel.fd, Word::started, {}, terminal.master);
  } else {
    say_value(channel.fd, Word::failed, problem);
  }
  if (terminal.master >= 0) ::close(terminal.master);
  if (terminal.slave >= 0) ::close(terminal.slave);
}

void tell_of_end(pid_t pid, int status);

/// As a new container would be, but for the files on its disk.
void reset(Reader reader) {
  ::kill(-1, SIGKILL);
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, 0)) > 0;) tell_of_end(pid, status);
  while (!reader.at_end()) {
    clear_memory(reader.text());
  }
  clear_ipc();
}

void add_channel(Frame& frame) {
  if (frame.file_count != 1) return;
  for (Channel& one : channels) {
    if (one.fd >= 0) continue;
    one = {frame.files[0], -1};
    frame.files[0] = -1;
    return;
  }
}

void end_channel(Channel& channel) {
  if (&channel == channels.data()) std::_Exit(0);  // and the kernel ends all others
  // It leads a session of its own.
  if (channel.pid > 0) {
    ::kill(-channel.pid, SIGKILL);
    ::kill(channel.pid, SIGKILL);
  }
  ::close(channel.fd);
  channel = {};
}

void hear(Channel& channel) {
  Frame frame;
  if (!receive(channel.fd, frame)) return end_channel(channel);
  switch (frame.head.kind) {
    case Word::file:
      return answer(channel.fd, write_file(Reader{frame}));
    case Word::folder: {
      Reader reader{frame};
      const auto head = reader.take<FolderHead>();
      char* const path = reader.text();
      // One that is to be given away whatever it is was mounted for that.
      if (head.give == 0 && leads_into_mount(path)) return answer(channel.fd, 0);
      return answer(channel.fd, make_folders(path, head));
    }
    case Word::link:
      return answer(channel.fd, make_link(Reader{frame}));
    case Word::mode:
      return answer(channel.fd, set_mode(Reader{frame}));
    case Word::start:
      return start(channel, frame);
    case Word::signal:
      if (channel.pid > 0) ::kill(channel.pid, Reader{frame}.take<std::int32_t>());
      return;
    case Word::channel:
      return add_channel(frame);
    case Word::reset:
      reset(Reader{frame});
      return answer(channel.fd, 0);
    default:
      return end_channel(channel);
  }
}

std::uint64_t microseconds(const timeval& time) {
  constexpr std::uint64_t kSecond = 1'000'000;
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_usec);
}

Ended ended(int status) {
  rusage use{};
  ::getrusage(RUSAGE_CHILDREN, &use);
  return {status,
          0,
          microseconds(use.ru_utime),
          microseconds(use.ru_stime),
          static_cast<std::uint64_t>(use.ru_inblock),
          static_cast<std::uint64_t>(use.ru_oublock),
          static_cast<std::uint64_t>(use.ru_maxrss)};
}

void tell_of_end(pid_t pid, int status) {
  for (Channel& one : channels) {
    if (one.pid != pid) continue;
    one.pid = -1;
    say_value(one.fd, Word::ended, ended(status));
  }
}

void reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) tell_of_end(pid, status);
}

/// From outside, as `docker stop` sends them: for the job.
void take_signals(int fd) {
  signalfd_siginfo info{};
  while (::read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGCHLD && channels[0].pid > 0) ::kill(channels[0].pid, number);
  }
  reap();
}

int hold_signals() {
  sigset_t set;
  sigfillset(&set);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);  // NOLINT(concurrency-mt-unsafe): one thread
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int reach_mlenv(const char* path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: connect(2)'s
  return ::connect(fd, plain, sizeof address) == 0 ? fd : -1;
}

int keep(const char* socket) {
  ::prctl(PR_SET_NAME, kProcessName);
  // The job may be the same root, and is neither to look into it nor to speak for it (ptrace(2)).
  ::prctl(PR_SET_DUMPABLE, 0);
  // It ends what it can reach by kill(-1), which are the container's processes only if it is the
  // first of them.
  if (::getpid() != 1) {
    errno = EPERM;
    std::perror("the container has no process ids of its own");  // NOLINT: no C++ library
    return kCannotReachMlenv;
  }
  const int signals = hold_signals();
  channels[0].fd = reach_mlenv(socket);
  if (signals < 0 || channels[0].fd < 0) {
    std::perror("the container cannot reach mlenv");  // NOLINT: no C++ library
    return kCannotReachMlenv;
  }
  const int root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  say(channels[0].fd, Word::hello, {}, root);
  ::close(root);
  while (true) {
    std::array<pollfd, kMostChannels + 1> fds{};
    for (std::size_t i = 0; i < kMostChannels; ++i) fds[i] = {channels[i].fd, POLLIN, 0};
    fds[kMostChannels] = {signals, POLLIN, 0};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[kMostChannels].revents != 0) take_signals(signals);
    for (std::size_t i = 0; i < kMostChannels; ++i) {
      if (fds[i].revents != 0 && channels[i].fd == fds[i].fd) hear(channels[i]);
    }
  }
}

}  // namespace
}  // namespace mlenv::keeper

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], mlenv::keeper::kEnter) == 0) {
    return mlenv::keeper::be_first(argc - 2, argv + 2);
  }
  // Whatever the engine has left open: nothing of it is the job's.
  mlenv::close_from(mlenv::kFirstBeyondStreams);
  if (argc != 2 || !mlenv::standard_streams()) return 2;
  return mlenv::keeper::keep(argv[1]);
}
