#include "runner/mpi/rank.hpp"

#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/process.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/mpi/shell_client.hpp"

namespace mlenv::mpi {
namespace {

bool ends(int number) { return number != SIGUSR1 && number != SIGUSR2; }

struct RankEnd {
  Exit exit;
  bool told_to_end = false;
};

/// In a group of its own, so that a signal for ours reaches it once. Throws `cannot-start`.
RankEnd run_until_end(const std::vector<std::string>& command) {
  const SignalQueue signals;  // before there is anything to pass them on to
  Command made{Purpose{"mpi-rank"}};
  made.argv = command;
  made.stdin_fd = STDIN_FILENO;
  Child child{made};
  const Fd ended = open_pidfd(child.pid());
  bool told_to_end = false;
  while (true) {
    std::array<pollfd, 2> fds{{{signals.fd(), POLLIN, 0}, {ended.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for `{}`", command.front());
    }
    while (const int number = signals.next()) {
      told_to_end = told_to_end || ends(number);
      child.signal(number);
    }
    if (fds[1].revents != 0) return {child.wait().value(), told_to_end};
  }
}

/// The same, where there may be no such program.
RankEnd run_or_say(const std::vector<std::string>& command) {
  try {
    return run_until_end(command);
  } catch (const Error& error) {
    if (error.code() != "cannot-start") throw;
    (void)write_quietly(STDERR_FILENO, fmt::format("mlenv: {}\n", error.what()));
    return {{kNotFoundStatus, false}, false};
  }
}

/// Which of the job's nodes this is: MPICH gives a rank mpirun's variables, and not its node's.
std::size_t node_index(const Membership& member) {
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
    for (const std::string& one : rank_variables(*place, node_index(member), member.own)) {
      const std::size_t equals = one.find('=');
      ::setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);  // NOLINT(*-mt-*)
    }
  }
  yield_where_crowded(place ? place->local_world : 1);
  ::unsetenv(kTokenVariable);  // NOLINT(*-mt-*): one thread; a rank needs no shell elsewhere
  const RankEnd end = run_or_say(command);
  const int status = end.exit.code;
  if (end.told_to_end || status == 0 || !place) return status;
  try {
    report_to(member.own, {static_cast<int>(place->rank), status}, member.secret);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): mpirun tells it too
  }
  return status;
}

}  // namespace mlenv::mpi
