#include "runner/mpi/serve.hpp"

#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/mpi/launch_words.hpp"
#include "runner/mpi/shell_server.hpp"

namespace mlenv::mpi {
namespace {

using std::chrono::steady_clock;

/// Until mpirun, which hears of a failed rank by its own way, has ended the others.
constexpr std::chrono::seconds kUntilHeard{5};
/// Nodes whose ranks failed are heard first: their containers end before the first one.
constexpr std::chrono::milliseconds kBehindOthers{500};
constexpr int kServeTick = 200;  // milliseconds
constexpr int kSooner = 20;      // while something is about to end

void say_line(const std::string& line) {
  (void)write_quietly(STDERR_FILENO, "mlenv: " + line + "\n");
}

void poll_nodes(std::vector<pollfd>& fds, int wait_ms) {
  if (::poll(fds.data(), fds.size(), wait_ms) < 0 && errno != EINTR) {
    throw os_error(errno, "cannot wait for the job's other nodes");
  }
}

/// A command whose output is shown in whole lines.
class Launched {
 public:
  Launched(Command command, Flavour flavour, std::uint64_t ranks)
      : streams_{{{{}, {flavour, ranks}, STDOUT_FILENO}, {{}, {flavour, ranks}, STDERR_FILENO}}} {
    Pipe out = make_pipe();
    Pipe err = make_pipe();
    command.stdout_fd = out.write_end.get();
    command.stderr_fd = err.write_end.get();
    child_.emplace(command);
    streams_[0].from = std::move(out.read_end);
    streams_[1].from = std::move(err.read_end);
  }

  static constexpr std::size_t kDescriptors = 2;
  void add_to(std::vector<pollfd>& fds) const {
    for (const Stream& one : streams_) fds.push_back({one.from.get(), POLLIN, 0});
  }
  void hear(const pollfd* fds) {
    for (Stream& one : streams_) {
      if ((fds++)->revents != 0) pass_on(one);
    }
  }
  /// Its output is over, but for what others hold open.
  std::optional<Exit> ended() {
    const std::optional<Exit> exit = child_->wait(std::chrono::milliseconds{0});
    if (!exit) return std::nullopt;
    for (Stream& one : streams_) {
      while (one.from && has_more(one)) pass_on(one);
      write_whole(one.to, one.lines.rest());
    }
    return exit;
  }
  bool about_to_end() const { return !streams_[0].from && !streams_[1].from; }
  void signal(int number) { child_->signal(number); }

 private:
  struct Stream {
    Fd from;
    RankLines lines;
    int to;
  };

  static bool has_more(const Stream& one) {
    pollfd ready{one.from.get(), POLLIN, 0};
    return ::poll(&ready, 1, 0) > 0;
  }
  static void write_whole(int to, std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = write_quietly(to, text);
      if (count <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  static void pass_on(Stream& one) {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(one.from.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) return one.from.reset();
    write_whole(one.to, one.lines.take({buffer.data(), static_cast<std::size_t>(count)}));
  }

  std::array<Stream, 2> streams_;
  std::optional<Child> child_;
};

Flavour flavour_here() {
  constexpr std::chrono::seconds kLongest{30};
  if (!find_program("mpirun")) {
    throw failure("cannot-start", "the image has no `mpirun`")
        .hint("add an MPI to its recipe: `system: [openmpi-bin, python3-mpi4py]`");
  }
  Command command{Purpose{"mpi-version"}};
  command.argv = {"mpirun", "--version"};
  const Captured said = run_captured(command, kLongest);
  if (const auto flavour = flavour_of(said.out + said.err)) return *flavour;
  throw failure("cannot-start", "the image's `mpirun` is of no MPI that mlenv knows")
      .because("it calls itself: " + said.out.substr(0, said.out.find('\n')))
      .hint(
          "start it yourself: `mpirun` as the job's command finds the nodes in "
          "$MLENV_MPI_HOSTFILE");
}

Launched started(const Membership& member, const std::vector<std::string>& command, bool mpirun) {
  Command made{Purpose{"mpi-launch"}};
  if (!mpirun) {
    made.argv = command;
    return {std::move(made), Flavour::open_mpi, 1};
  }
  const Flavour flavour = flavour_here();
  const std::uint64_t ranks = slots_of(member.hosts);
  made.argv = mpirun_argv(flavour, ranks, member.hosts.front().slots, kProgram, command);
  return {std::move(made), flavour, ranks};
}

/// What mpirun said of a failure is followed by whose it was.
int final_status(const Exit& exit, const std::optional<RankFailure>& rank) {
  if (rank) say_line(failure_text(*rank));
  return rank && exit.code == 0 ? rank->status : exit.code;
}

int follow_command(const Membership& member, Launched& command) {
  ShellServer server{member.own, member.secret};
  const SignalQueue signals;
  std::optional<int> status;
  std::optional<steady_clock::time_point> last;
  while (true) {
    if (const auto exit = status ? std::nullopt : command.ended()) {
      status = final_status(*exit, server.failure());
      const bool elsewhere = *status != 0 && !server.failure() && member.hosts.size() > 1;
      last = steady_clock::now() + (elsewhere ? kBehindOthers : std::chrono::milliseconds{0});
    }
    if (status && steady_clock::now() >= *last) return *status;
    std::vector<pollfd> fds{{signals.fd(), POLLIN, 0}};
    command.add_to(fds);
    server.add_to(fds);
    poll_nodes(fds, command.about_to_end() ? kSooner : kServeTick);
    while (const int number = signals.next()) {
      if (!status) command.signal(number);
    }
    command.hear(fds.data() + 1);
    server.hear(fds.data() + 1 + Launched::kDescriptors);
    if (status || !server.failure()) continue;
    if (!last) last = steady_clock::now() + kUntilHeard;
    if (steady_clock::now() >= *last) command.signal(SIGKILL);
  }
}

}  // namespace

int wait_for_commands(const Membership& member) {
  ShellServer server{member.own, member.secret};
  const SignalQueue signals;
  std::optional<steady_clock::time_point> end_at;
  bool told_to_end = false;
  while (true) {
    if (server.failure() && !end_at) {
      say_line(failure_text(*server.failure()));
      end_at = steady_clock::now() + kUntilHeard;
    }
    if (server.failure() && (server.idle() || steady_clock::now() >= *end_at)) {
      return server.failure()->status;
    }
    if (told_to_end && server.idle()) return 0;
    std::vector<pollfd> fds{{signals.fd(), POLLIN, 0}};
    server.add_to(fds);
    poll_nodes(fds, kServeTick);
    while (const int number = signals.next()) {
      told_to_end = told_to_end || (number != SIGUSR1 && number != SIGUSR2);
    }
    server.hear(fds.data() + 1);
  }
}

int launch(const Membership& member, const std::vector<std::string>& command, bool mpirun) {
  try {
    Launched launched = started(member, command, mpirun);
    return follow_command(member, launched);
  } catch (const Error& error) {
    if (error.code() != "cannot-start") throw;
    say_line(error.what());
    if (!error.hint().empty()) say_line("what to do: " + error.hint());
    return kNotFoundStatus;
  }
}

}  // namespace mlenv::mpi
