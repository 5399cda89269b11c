#include "runner/local/detached.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "images/store.hpp"
#include "runner/after/after.hpp"
#include "runner/local/control.hpp"
#include "runner/local/layer_use.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/signals.hpp"
#include "runner/local/stage.hpp"
#include "runner/record/run_log.hpp"
#include "runner/record/run_recorder.hpp"
#include "runner/record/run_records.hpp"
#include "runner/repeat/deterministic.hpp"
#include "runner/repeat/outputs.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr std::string_view kSuperviseArgument = "__supervise";
/// Before the number of the process with which an attached one ends.
constexpr std::string_view kAttached = "attached";
constexpr int kCallerSocket = 3;
constexpr std::uint64_t kMostRunRequest = std::uint64_t{64} << 20;

std::string render_detached(const DetachedRun& run) {
  const std::string request = render_request(run.run);
  return cbor_bytes({{"run", json::binary({request.begin(), request.end()})},
                     {"start", render_run_start(run.start)},
                     {"store", run.store.native()},
                     {"most_log_bytes", run.most_log_bytes},
                     {"host", run.host},
                     {"failure_status", run.failure_status}});
}

DetachedRun parse_detached(std::string_view bytes) {
  const json value = json::from_cbor(bytes.begin(), bytes.end());
  const json::binary_t& request = value.at("run").get_binary();
  DetachedRun run;
  run.run = parse_request(std::string(request.begin(), request.end()));
  run.start = parse_run_start(value.at("start").get<std::string>(), "the request");
  run.store = value.at("store").get<std::string>();
  run.most_log_bytes = value.at("most_log_bytes");
  run.host = value.at("host").get<std::string>();
  run.failure_status = value.at("failure_status");
  return run;
}

/// The way back to the mlenv that waits for the start: used once; attached, until the end, and for
/// what each word of it is framed.
class Starter {
 public:
  Starter(Fd socket, bool attached) : socket_(std::move(socket)), attached_(attached) {}
  bool attached() const { return attached_; }
  void recorded(const std::string& id) {
    if (attached_) say({{"id", id}});
  }
  /// Attached: output that the log says nothing of, since there is no room for that either.
  void lost_output(std::uint64_t bytes) {
    if (attached_ && bytes > 0) say({{"lost_output", bytes}});
  }
  void started(const std::string& id) {
    if (attached_) {
      say({{"started", true}});
    } else {
      tell(cbor_bytes({{"id", id}}));
    }
  }
  /// The last word.
  void tell(std::string_view bytes) {
    if (!socket_) return;
    if (attached_) return say_frame(bytes);
    // A full socket buffer holds far more than this, and nobody may read it any more.
    (void)::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    // The stage, a copy of this process, has the socket open, too.
    ::shutdown(socket_.get(), SHUT_RDWR);
    socket_.reset();
  }

 private:
  void say(const json& value) { say_frame(cbor_bytes(value)); }
  void say_frame(std::string_view bytes) {
    const std::string frame = framed(bytes);
    (void)::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  }

  Fd socket_;
  bool attached_;
};

/// Standard streams that lead nowhere: the terminal may close.
void leave_terminal() {
  const Fd null = open_file("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null.get(), fd);
  (void)!::chdir("/");
}

/// Both streams of a command, written down as they come.
class KeptOutput {
 public:
  /// What finds no room, without room for a remark either, is told to `starter`, too.
  KeptOutput(const fs::path& folder, std::uint64_t most_bytes, Starter& starter)
      : log_(folder, most_bytes), starter_(starter) {}
  void give_to(LocalRun& run) {
    run.fds.out = out_.write_end.get();
    run.fds.err = err_.write_end.get();
  }
  /// The stage has its copies: when those are closed, the pipes end.
  void forget_write_ends() {
    out_.write_end.reset();
    err_.write_end.reset();
  }
  /// What is said of the command on standard error is part of its output.
  void take_complaints() const { ::dup2(err_.write_end.get(), STDERR_FILENO); }
  std::vector<RunEvents::Reader> readers() {
    return {{out_.read_end.get(), [this] { return take(out_.read_end, LogStream::out); }},
            {err_.read_end.get(), [this] { return take(err_.read_end, LogStream::err); }}};
  }
  RecordedLog finish() {
    RecordedLog kept = log_.finish();
    starter_.lost_output(log_.unremarked());
    return kept;
  }

 private:
  bool take(const Fd& fd, LogStream stream) {
    ssize_t count = 0;
    while ((count = ::read(fd.get(), buffer_.data(), buffer_.size())) < 0 && errno == EINTR) {
    }
    if (count <= 0) return false;
    const bool had_room = log_.unremarked() == 0;
    log_.write(stream, {buffer_.data(), static_cast<std::size_t>(count)});
    if (had_room) starter_.lost_output(log_.unremarked());
    return true;
  }

  LogWriter log_;
  Starter& starter_;
  Pipe out_ = make_pipe();
  Pipe err_ = make_pipe();
  std::array<char, 65536> buffer_{};
};

std::vector<PlacedOutput> outputs_of(const DetachedRun& request) {
  std::vector<std::string> paths;
  for (const DeclaredOutput& one : request.start.outputs) paths.push_back(one.path);
  return placed_outputs(request.run, paths);
}

/// Signals are the command's: passed on while it runs (SignalForwarding). What is left to do after
/// it tells of its end, and is not cut off by one; whoever has no patience for that has SIGKILL.
void leave_signals_to_the_command() {
  struct sigaction action {};
  // Not SIG_IGN, which would be the command's, too.
  action.sa_handler = [](int /*number*/) {};
  action.sa_flags = SA_RESTART;
  for (const int number : kForwarded) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler == SIG_DFL) ::sigaction(number, &action, nullptr);
  }
}

/// Where that comes to nothing, too, the first error is the one to tell.
void record_failure(RunRecorder& recorder, const Error& error, int status, KeptOutput& output) {
  try {
    recorder.gave_up(error, status, output.finish());
  } catch (const Error& other) {
    log::debug("the failure is not recorded: {}", other.what());
  }
}

/// Nothing once the runs have ended well after which it is to start.
std::optional<RunOutcome> wait_for_earlier_runs(const DetachedRun& request, RunRecorder& recorder,
                                                const KeptOutput& output, Starter& starter) {
  WaitEvents events;
  events.control = request.run.fds.control;
  events.waiting = [&](bool waits) {
    recorder.waiting(waits);
    if (!waits) return;
    starter.started(recorder.id());
    leave_terminal();
    output.take_complaints();  // of the command, later: nobody else hears them any more
  };
  return wait_for_runs(request.store, request.start.after, events);
}

/// A start that failed is recorded, as in the foreground.
RunOutcome run_and_keep(DetachedRun& request, RunRecorder& recorder, Starter& starter) {
  const std::vector<PlacedOutput> outputs = outputs_of(request);
  KeptOutput output{log_folder(recorder.folder()), request.most_log_bytes, starter};
  output.give_to(request.run);
  if (starter.attached()) output.take_complaints();
  RunEvents events;
  events.started = [&] {
    recorder.started();
    starter.started(recorder.id());
    leave_terminal();
  };
  events.attempt_ended = [&](const AttemptEnd& attempt) {
    try {
      recorder.attempt_ended(attempt);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a full disk ends no run
    }
  };
  events.forked = [&] { output.forget_write_ends(); };
  events.readers = output.readers();
  leave_signals_to_the_command();
  std::optional<RunOutcome> outcome;
  try {
    outcome = wait_for_earlier_runs(request, recorder, output, starter);
    if (!outcome) outcome = run_local(request.run, std::move(events));
    recorder.ended(
        *outcome, [&] { return read_outputs(outputs); }, output.finish());
  } catch (const Error& error) {
    // A command that has ended has its status, whether or not a full disk takes the record of it.
    if (outcome && starter.attached()) return *std::move(outcome);
    record_failure(recorder, error, request.failure_status, output);
    throw;
  }
  return *std::move(outcome);
}

void supervise_run(DetachedRun request, Starter& starter) {
  try {
    Store store{request.store};
    const TemporaryFolder scratch = store.scratch();
    request.run.scratch = scratch.path();
    const std::unique_ptr<UsedLayer> layer = use_layer(store.root(), request.start, request.run);
    if (const auto& switches = request.start.deterministic) {
      make_deterministic(request.run, switches->seed, caller_variables());
    }
    RunRecorder recorder{runs_folder(store.root()), request.start,
                         KnownState{std::nullopt, request.host}};
    store.need_only({Digest::parse(request.start.image.digest)});  // it may go on for weeks
    starter.recorded(recorder.id());
    const Fd control = listen_for_control(recorder.folder());
    request.run.fds.control = control.get();
    const RunOutcome outcome = run_and_keep(request, recorder, starter);
    starter.tell(render_outcome(outcome));
  } catch (const Error& error) {
    starter.tell(render_outcome(error));
  } catch (const std::exception& error) {
    starter.tell(render_outcome(Error(Kind::internal, "internal", error.what())));
  }
}

}  // namespace

namespace {

/// Starts a supervisor with that command, which finds `socket`'s other end at kSocket.
Child supervisor(Command command, Fd& socket) {
  constexpr int kBeyondOthers = 16;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  socket = Fd{ends[0]};
  const Fd theirs{ends[1]};
  // dup2(2) to the same number would leave it close-on-exec.
  const Fd moved{::fcntl(theirs.get(), F_DUPFD_CLOEXEC, kBeyondOthers)};
  if (!moved) throw os_error(errno, "cannot copy a descriptor");
  command.argv.insert(command.argv.begin(),
                      {own_executable().string(), std::string(kSuperviseArgument)});
  command.extra_fds = {{moved.get(), kCallerSocket}};
  return Child{command};
}

}  // namespace

StartedRun start_detached_run(const DetachedRun& run) {
  Fd socket;
  Command command{Purpose{"run-supervisor"}};
  command.own_group = false;  // the leader of a group may not leave its session
  Child child = supervisor(std::move(command), socket);
  send_all(socket.get(), render_detached(run));
  FdSource source{socket.get()};
  const std::string answer = read_all(source, std::uint64_t{1} << 20);
  (void)child.wait();
  if (answer.empty()) {
    throw failure("run-failed", "the run's supervisor was killed before the command ran");
  }
  const json value = json::from_cbor(answer.begin(), answer.end(), true, false);
  if (value.is_object() && value.contains("id")) return {value.at("id"), std::nullopt};
  return {"", parse_stage_outcome(answer).run};
}

AttachedRun::AttachedRun(const DetachedRun& run) {
  const Fd null = open_file("/dev/null", O_RDWR);
  Command command{Purpose{"run-supervisor"}};
  command.argv = {std::string(kAttached), std::to_string(::getpid())};
  command.stdout_fd = null.get();
  command.stderr_fd = null.get();
  Fd socket;
  Child child = supervisor(std::move(command), socket);
  send_all(socket.get(), render_detached(run));
  look_after(std::move(child), std::move(socket));
}

bool AttachedRun::take_own(const json& word) {
  if (!word.contains("lost_output")) return false;
  lost_output_ = word.at("lost_output");
  return true;
}

void AttachedRun::on_started() {
  if (const int number = std::exchange(waiting_signal_, 0)) signal_process(number);
}

void AttachedRun::signal(int number) {
  if (started()) {
    signal_process(number);
  } else {
    waiting_signal_ = number;
  }
}

namespace {

/// One that is attached: it ends with the process of that number, its parent.
int attached_main(const std::string& parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != parent) return 1;  // it was gone before
  FdSource source{kCallerSocket};
  const std::string request = read_all(source, kMostRunRequest);
  Starter starter{Fd{kCallerSocket}, true};
  supervise_run(parse_detached(request), starter);
  return 0;
}

}  // namespace

std::optional<int> detached_main(int argc, char** argv) {
  constexpr int kWordsAttached = 4;
  if (argc < 2 || argv[1] != kSuperviseArgument) return std::nullopt;
  ::fcntl(kCallerSocket, F_SETFD, FD_CLOEXEC);
  if (argc == kWordsAttached && argv[2] == kAttached) return attached_main(argv[3]);
  if (argc != 2) return std::nullopt;
  // Whoever started us waits for our end; the run goes on in a session that has no terminal and
  // whose leader is gone, so that it cannot get one.
  ::setsid();
  const pid_t pid = ::fork();
  if (pid != 0) ::_exit(pid < 0 ? 1 : 0);
  FdSource source{kCallerSocket};
  const std::string request = read_all(source, kMostRunRequest);
  Starter starter{Fd{kCallerSocket}, false};
  supervise_run(parse_detached(request), starter);
  return 0;
}

}  // namespace mlenv
