#include "runner/engine/keeper/processes.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/descriptors.hpp"
#include "runner/engine/keeper/enter.hpp"
#include "runner/engine/keeper/files.hpp"

namespace mlenv::keeper {
namespace {

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
  close_on_exec_from(kFirstBeyondStreams);
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
  // Once as root, who makes it where it is absent, and once as the job, who may enter less. In a
  // mount it is made by the job, and belongs to whoever that is outside.
  const bool makes = (head.flags & StartHead::kMakeFolder) != 0;
  const auto enter = [&](bool may_make) {
    errno = enter_folder(words.folder);
    if (errno == 0) return true;
    if (!may_make || errno != ENOENT) return false;
    errno = make_folders(words.folder, {head.uid, head.gid, 0});
    if (errno == 0) errno = enter_folder(words.folder);
    return errno == 0;
  };
  const bool entered = enter(makes && !leads_into_mount(words.folder));
  if (const int error = become(head, groups); error != 0) return {error, Failed::Step::user};
  if (!entered && !enter(makes)) return {errno, Failed::Step::folder};
  return {execute(words), Failed::Step::program};
}

}  // namespace

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

}  // namespace mlenv::keeper
