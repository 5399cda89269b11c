// The first process of a container that an engine (docker, podman) runs for mlenv: it starts the
// command with the very streams that mlenv has, passes signals on, reaps, and tells how the command
// ended. When mlenv is gone, its end of the socket closes; this process then ends, and the kernel
// ends all others of the container with it: so not even `kill -9` of mlenv leaves one running.
//
// Linked statically against the C library alone, for it runs in any image. Usage: keeper SOCKET
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>

#include "runner/engine/keeper/protocol.hpp"

namespace mlenv::keeper {
namespace {

constexpr int kCannotReachMlenv = 97;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::size_t kMostChannels = 256;

/// mlenv's end of it asks for one process; the first channel's for the job.
struct Channel {
  int fd = -1;
  pid_t pid = -1;
};
std::array<Channel, kMostChannels> channels;  // NOLINT: a program of one file

struct Frame {
  Head head;
  char* bytes = nullptr;
  std::array<int, kMostFiles> files{-1, -1, -1};
  std::size_t file_count = 0;

  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    std::free(bytes);  // NOLINT: no C++ library here
    for (const int fd : files) {
      if (fd >= 0) ::close(fd);
    }
  }
};

/// Takes numbers and texts from a frame's front.
class Reader {
 public:
  explicit Reader(const Frame& frame) : at_(frame.bytes), end_(frame.bytes + frame.head.bytes) {}
  template <class Value>
  Value take() {
    Value value{};
    if (static_cast<std::size_t>(end_ - at_) < sizeof value) std::_Exit(kCannotReachMlenv);
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  char* text() {
    char* const begin = at_;
    void* const nul = std::memchr(at_, 0, static_cast<std::size_t>(end_ - at_));
    if (nul == nullptr) std::_Exit(kCannotReachMlenv);
    at_ = static_cast<char*>(nul) + 1;
    return begin;
  }
  std::span<const char> rest() const { return {at_, end_}; }
  bool at_end() const { return at_ == end_; }

 private:
  char* at_;
  char* end_;
};

bool read_whole(int fd, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = ::read(fd, to, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_whole(int fd, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = ::write(fd, from, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    from += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

void take_files(msghdr& message, Frame& frame) {
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    frame.file_count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(frame.files.data(), CMSG_DATA(one), frame.file_count * sizeof(int));
  }
}

/// False when the other side is gone.
bool receive(int fd, Frame& frame) {
  std::array<char, CMSG_SPACE(sizeof(int) * kMostFiles)> control{};
  iovec part{&frame.head, sizeof frame.head};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t count = 0;
  while ((count = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (count <= 0) return false;
  take_files(message, frame);
  auto* const head = reinterpret_cast<char*>(&frame.head);  // NOLINT: its bytes
  const auto had = static_cast<std::size_t>(count);
  if (had < sizeof frame.head && !read_whole(fd, head + had, sizeof frame.head - had)) return false;
  if (frame.head.bytes > kMostBytes) return false;
  frame.bytes = static_cast<char*>(std::malloc(frame.head.bytes + 1));  // NOLINT: no C++ library
  return frame.bytes != nullptr && read_whole(fd, frame.bytes, frame.head.bytes);
}

struct Nothing {};

/// The value's bytes with one open file, or none. Nobody may listen any more.
template <class Value = Nothing>
void say(int fd, Word kind, const Value& value = {}, int file = -1) {
  constexpr bool kEmpty = std::is_empty_v<Value>;
  Head head{kEmpty ? 0 : static_cast<std::uint32_t>(sizeof value), kind};
  std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{&head, sizeof head};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(rights), &file, sizeof file);
  }
  if (::sendmsg(fd, &message, MSG_NOSIGNAL) < 0 || kEmpty) return;
  const auto* const bytes = reinterpret_cast<const char*>(&value);  // NOLINT: its bytes
  (void)write_whole(fd, bytes, sizeof value);
}

void answer(int fd, int error, Failed::Step step = Failed::Step::files) {
  if (error == 0) return say(fd, Word::done);
  say(fd, Word::failed, Failed{error, step});
}

/// Whether what is there of `path`, links followed, lies in another mount than the root: a folder
/// of the person's, in which nothing of ours is made.
bool leads_into_mount(const char* path) {
  std::array<char, 4096> part{};
  std::strncpy(part.data(), path, part.size() - 1);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV;
  while (true) {
    const long fd = ::syscall(SYS_openat2, AT_FDCWD, part.data(), &how, sizeof how);
    if (fd >= 0) ::close(static_cast<int>(fd));
    if (fd >= 0 || errno != ENOENT) return fd < 0 && errno == EXDEV;
    char* const slash = std::strrchr(part.data(), '/');
    if (slash == nullptr || slash == part.data()) return false;
    *slash = '\0';
  }
}

/// 0, or errno. Those that are made belong to us, the last one as `head` says.
int make_folders(char* path, const FolderHead& head) {
  bool made = false;
  for (char* slash = path; slash != nullptr;) {
    slash = std::strchr(slash + 1, '/');
    if (slash != nullptr) *slash = '\0';
    made = ::mkdir(path, 0755) == 0;
    const int error = made ? 0 : errno;
    if (slash != nullptr) *slash = '/';
    if (error != 0 && error != EEXIST) return error;
  }
  struct stat status {};
  if (::stat(path, &status) != 0) return errno;
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  if (!made && head.give == 0) return 0;
  return ::chown(path, head.uid, head.gid) == 0 || errno == EPERM ? 0 : errno;
}

int write_into(const char* path, int flags, const FileHead& head, std::span<const char> content) {
  const int fd = ::open(path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = write_whole(fd, content.data(), content.size()) ? 0 : errno;
  if ((flags & O_CREAT) != 0) {
    (void)::fchown(fd, head.uid, head.gid);
    (void)::fchmod(fd, head.mode);
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  return error;
}

int write_file(Reader reader) {
  const auto head = reader.take<FileHead>();
  char* const path = reader.text();
  if (char* const slash = std::strrchr(path, '/'); slash != nullptr && slash != path) {
    *slash = '\0';
    if (leads_into_mount(path)) return 0;
    if (const int error = make_folders(path, {}); error != 0) return error;
    *slash = '/';
  }
  constexpr const char* kSuffix = ".mlenv-new";
  std::array<char, 4096> beside{};
  if (std::snprintf(beside.data(), beside.size(), "%s%s", path, kSuffix) >=  // NOLINT: no library
      static_cast<int>(beside.size())) {
    return ENAMETOOLONG;
  }
  (void)::unlink(beside.data());
  int error = write_into(beside.data(), O_CREAT | O_EXCL, head, reader.rest());
  if (error == 0 && ::rename(beside.data(), path) != 0) error = errno;
  if (error != 0) (void)::unlink(beside.data());
  // What the engine itself mounts there (/etc/hosts) is written in place.
  return error == EBUSY ? write_into(path, O_TRUNC, head, reader.rest()) : error;
}

struct Terminal {
  int master = -1;
  int slave = -1;
};

int open_terminal(const StartHead& head, Terminal& terminal) {
  terminal.master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  int locked = 0;
  if (terminal.master < 0 || ::ioctl(terminal.master, TIOCSPTLCK, &locked) != 0) return errno;
  terminal.slave = ::ioctl(terminal.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal.slave < 0) return errno;
  const winsize size{static_cast<unsigned short>(head.rows),
                     static_cast<unsigned short>(head.columns), 0, 0};
  if (size.ws_row > 0) ::ioctl(terminal.master, TIOCSWINSZ, &size);
  return 0;
}

/// So that the job may open `/dev/stdout` anew. The container's own terminal; else pipes and
/// sockets that root hands to another user: files and terminals of others stay theirs.
void give_stream(int fd, const StartHead& head) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || status.st_uid == head.uid) return;
  const bool own = (head.flags & StartHead::kTerminal) != 0;
  const bool pipe = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
  const bool given = own || (pipe && (head.flags & StartHead::kGiveStreams) != 0);
  if (given) (void)::fchown(fd, head.uid, static_cast<gid_t>(-1));
}

struct Words {
  char* folder = nullptr;
  char** argv = nullptr;
  char** env = nullptr;
};

char** take_words(Reader& reader, std::size_t count) {
  auto** const words = static_cast<char**>(std::calloc(count + 1, sizeof(char*)));  // NOLINT
  for (std::size_t i = 0; words != nullptr && i < count; ++i) words[i] = reader.text();
  return words;
}

int become(const StartHead& head, std::span<const gid_t> groups) {
  ::umask(head.umask);
  if ((head.flags & StartHead::kSetGroups) != 0 && ::setgroups(groups.size(), groups.data()) != 0) {
    return errno;
  }
  if (::getgid() != head.gid && ::setgid(head.gid) != 0) return errno;
  if (::getuid() != head.uid && ::setuid(head.uid) != 0) return errno;
  return 0;
}

/// As execvp(3), by the PATH that the program gets.
int execute(const Words& words) {
  if (words.argv == nullptr || words.argv[0] == nullptr || words.env == nullptr) return ENOMEM;
  ::environ = words.env;
  ::execvp(words.argv[0], words.argv);
  return errno;
}

/// In the new process; what went wrong.
Failed be_started(const StartHead& head, std::span<const gid_t> groups, const Words& words,
                  const std::array<int, kMostFiles>& streams) {
  ::setsid();
  for (int i = 0; i < 3; ++i) {
    give_stream(streams[static_cast<std::size_t>(i)], head);
    if (::dup2(streams[static_cast<std::size_t>(i)], i) < 0) return {errno, Failed::Step::process};
  }
  if ((head.flags & StartHead::kTerminal) != 0 && ::ioctl(0, TIOCSCTTY, 0) != 0) {
    return {errno, Failed::Step::process};
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);  // NOLINT(concurrency-mt-unsafe): one thread
  (void)std::signal(SIGPIPE, SIG_DFL);
  // Once as root, who makes it where it is absent, and once as the job, who may enter less.
  if ((head.flags & StartHead::kMakeFolder) != 0 && ::chdir(words.folder) != 0 && errno == ENOENT) {
    (void)make_folders(words.folder, {});
  }
  const bool entered = ::chdir(words.folder) == 0;
  if (const int error = become(head, groups); error != 0) return {error, Failed::Step::user};
  if (!entered && ::chdir(words.folder) != 0) return {errno, Failed::Step::folder};
  return {execute(words), Failed::Step::program};
}

/// The process id, or what went wrong.
pid_t start_process(const Frame& frame, const Terminal& terminal, Failed& problem) {
  Reader reader{frame};
  const auto head = reader.take<StartHead>();
  std::array<gid_t, 1024> groups{};
  if (head.groups > groups.size()) {
    problem = {EINVAL, Failed::Step::user};
    return -1;
  }
  for (std::size_t i = 0; i < head.groups; ++i) groups[i] = reader.take<std::uint32_t>();
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    problem = {errno, Failed::Step::process};
    return -1;
  }
  Words words;
  words.folder = reader.text();
  words.argv = take_words(reader, head.words);
  words.env = take_words(reader, head.variables);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool on_terminal = terminal.slave >= 0;
    const std::array<int, kMostFiles> streams =
        on_terminal ? std::array{terminal.slave, terminal.slave, terminal.slave} : frame.files;
    const Failed failed = be_started(head, {groups.data(), head.groups}, words, streams);
    (void)!::write(pipe[1], &failed, sizeof failed);
    std::_Exit(127);
  }
  if (pid < 0) problem = {errno, Failed::Step::process};
  ::close(pipe[1]);
  std::free(words.argv);  // NOLINT
  std::free(words.env);   // NOLINT
  const bool failed = pid > 0 && ::read(pipe[0], &problem, sizeof problem) > 0;
  ::close(pipe[0]);
  if (!failed) return pid;
  ::waitpid(pid, nullptr, 0);
  return -1;
}

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
    say(channel.fd, Word::failed, problem);
  }
  if (terminal.master >= 0) ::close(terminal.master);
  if (terminal.slave >= 0) ::close(terminal.slave);
}

/// What lies in a folder, on its file system alone: what is mounted below it is the person's.
void clear(int fd, dev_t device, int depth = 0) {
  constexpr int kDeepest = 200;
  struct stat status {};
  const bool within = ::fstat(fd, &status) == 0 && status.st_dev == device && depth <= kDeepest;
  DIR* const folder = within ? ::fdopendir(fd) : nullptr;
  if (folder == nullptr) {
    ::close(fd);
    return;
  }
  while (const dirent* const entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe)
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    if (::unlinkat(fd, entry->d_name, 0) == 0 || errno != EISDIR) continue;
    const int below = ::openat(fd, entry->d_name, kFolder);
    if (below >= 0) clear(below, device, depth + 1);
    (void)::unlinkat(fd, entry->d_name, AT_REMOVEDIR);
  }
  ::closedir(folder);
}

/// A folder in memory; one of a disk has been mounted in its place, and is not ours.
void clear_memory(const char* path) {
  const int fd = ::open(path, kFolder);
  struct stat status {};
  struct statfs system {};
  if (fd < 0) return;
  constexpr long kQueues = 0x19800202;  // MQUEUE_MAGIC of the kernel's ipc/mqueue.c
  const bool in_memory = ::fstatfs(fd, &system) == 0 && ::fstat(fd, &status) == 0 &&
                         (system.f_type == TMPFS_MAGIC || system.f_type == kQueues);
  if (!in_memory) {
    ::close(fd);
    return;
  }
  clear(fd, status.st_dev);
}

/// Ids are the second column of /proc/sysvipc/KIND.
template <class Remove>
void clear_ipc(const char* list, Remove remove) {
  FILE* const file = std::fopen(list, "re");  // NOLINT: no C++ library
  if (file == nullptr) return;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
    char* rest = line.data();
    (void)std::strtol(rest, &rest, 10);
    char* end = rest;
    const long id = std::strtol(rest, &end, 10);
    if (end != rest) remove(static_cast<int>(id));
  }
  (void)std::fclose(file);
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
  clear_ipc("/proc/sysvipc/shm", [](int id) { ::shmctl(id, IPC_RMID, nullptr); });
  clear_ipc("/proc/sysvipc/sem", [](int id) { ::semctl(id, 0, IPC_RMID); });
  clear_ipc("/proc/sysvipc/msg", [](int id) { ::msgctl(id, IPC_RMID, nullptr); });
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
    say(one.fd, Word::ended, ended(status));
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

int main(int argc, char** argv) { return argc == 2 ? mlenv::keeper::keep(argv[1]) : 2; }
