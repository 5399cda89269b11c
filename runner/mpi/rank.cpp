#include "runner/mpi/rank.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/text.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/mpi/shell_client.hpp"

namespace mlenv::mpi {
namespace {

constexpr int kNotFound = 127;
constexpr int kCannotRun = 126;

[[noreturn]] void become(const std::vector<char*>& argv) {
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::execvp(argv.front(), argv.data());
  const int error = errno;
  const std::string why =
      fmt::format("mlenv: cannot run `{}`: {}\n", argv.front(), os_error(error, "exec").what());
  (void)write_quietly(STDERR_FILENO, why);
  ::_exit(error == ENOENT ? kNotFound : kCannotRun);
}

/// The program, in a group of its own, so that a signal for our group reaches it once; killed with
/// us.
class RankProcess {
 public:
  explicit RankProcess(const std::vector<std::string>& command) {
    const std::vector<char*> argv = c_strings(command);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw os_error(errno, "cannot start `{}`", command.front());
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(kNotFound);
      become(argv);
    }
    ::setpgid(pid_, pid_);
    pidfd_ = open_pidfd(pid_);
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess() {
    if (pid_ > 0) ::kill(-pid_, SIGKILL);
  }
  int fd() const { return pidfd_.get(); }
  void signal(int number) const { ::kill(-pid_, number); }
  Exit wait() { return reap(std::exchange(pid_, -1)); }

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
};

bool ends(int number) { return number != SIGUSR1 && number != SIGUSR2; }

/// How it ended; nullopt: it was told to end.
std::optional<Exit> run_to_end(const std::vector<std::string>& command, int& status) {
  const SignalQueue signals;  // before there is anything to pass them on to
  RankProcess process{command};
  bool told_to_end = false;
  while (true) {
    std::array<pollfd, 2> fds{{{signals.fd(), POLLIN, 0}, {process.fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for `{}`", command.front());
    }
    while (const int number = signals.next()) {
      told_to_end = told_to_end || ends(number);
      process.signal(number);
    }
    if (fds[1].revents == 0) continue;
    const Exit exit = process.wait();
    status = exit.code;
    if (told_to_end) return std::nullopt;
    return exit;
  }
}

/// Which of the job's nodes this is: MPICH gives a rank mpirun's variables, and not its node's.
std::size_t node_of(const Membership& member) {
  const auto found = std::find(member.hosts.begin(), member.hosts.end(), member.own);
  return found == member.hosts.end() ? 0 : static_cast<std::size_t>(found - member.hosts.begin());
}

/// Ranks that wait spin: where there are more of them than processors they take the time that the
/// others need. mpirun cannot tell, since it was promised as many slots.
void yield_where_crowded(std::uint64_t ranks) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (::sched_getaffinity(0, sizeof processors, &processors) != 0) return;
  if (ranks <= static_cast<std::uint64_t>(CPU_COUNT(&processors))) return;
  ::setenv(kYieldVariable, "1", 0);  // NOLINT(*-mt-*): one thread
}

}  // namespace

std::vector<std::string> rank_variables(const RankPlace& place, std::size_t node, const Host& own) {
  return {fmt::format("RANK={}", place.rank),
          fmt::format("WORLD_SIZE={}", place.world),
          fmt::format("LOCAL_RANK={}", place.local_rank),
          fmt::format("LOCAL_WORLD_SIZE={}", place.local_world),
          fmt::format("NODE_RANK={}", node),
          fmt::format("GROUP_RANK={}", node),
          fmt::format("MLENV_NODE={}", node),
          fmt::format("MLENV_NODE_NAME={}", own.name),
          fmt::format("MLENV_SHARD={}", place.rank),
          fmt::format("MLENV_SHARDS={}", place.world)};
}

int run_rank(const Membership& member, const std::vector<std::string>& command) {
  const std::optional<RankPlace> place = rank_place(caller_variables());
  if (place) {
    for (std::string one : rank_variables(*place, node_of(member), member.own)) {
      const std::size_t equals = one.find('=');
      ::setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);  // NOLINT(*-mt-*)
    }
  }
  yield_where_crowded(place ? place->local_world : 1);
  ::unsetenv(kTokenVariable);  // NOLINT(*-mt-*): one thread; a rank needs no shell elsewhere
  int status = 0;
  const std::optional<Exit> exit = run_to_end(command, status);
  if (!exit || exit->code == 0 || !place) return status;
  try {
    report_to(member.own, {static_cast<int>(place->rank), exit->code}, member.secret);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): mpirun tells it too
  }
  return status;
}

}  // namespace mlenv::mpi
