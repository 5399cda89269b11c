#include "runner/local/detached.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "images/store.hpp"
#include "runner/local/control.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/stage.hpp"
#include "runner/record/run_log.hpp"
#include "runner/record/run_recorder.hpp"
#include "runner/record/run_records.hpp"
#include "runner/repeat/deterministic.hpp"
#include "runner/repeat/outputs.hpp"

namespace mlenv {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kArgument = "__supervise";
constexpr int kSocket = 3;
constexpr std::uint64_t kMostRequest = std::uint64_t{64} << 20;

std::string to_bytes(const Json& value) {
  const std::vector<std::uint8_t> cbor = Json::to_cbor(value);
  return {cbor.begin(), cbor.end()};
}

std::string render_detached(const DetachedRun& run) {
  const std::string request = render_request(run.run);
  return to_bytes({{"run", Json::binary({request.begin(), request.end()})},
                   {"start", render_run_start(run.start)},
                   {"store", run.store.native()},
                   {"most_log_bytes", run.most_log_bytes},
                   {"failure_status", run.failure_status}});
}

DetachedRun parse_detached(std::string_view bytes) {
  const Json value = Json::from_cbor(bytes.begin(), bytes.end());
  const Json::binary_t& request = value.at("run").get_binary();
  DetachedRun run;
  run.run = parse_request(std::string(request.begin(), request.end()));
  run.start = parse_run_start(value.at("start").get<std::string>(), "the request");
  run.store = value.at("store").get<std::string>();
  run.most_log_bytes = value.at("most_log_bytes");
  run.failure_status = value.at("failure_status");
  return run;
}

/// The way back to the mlenv that waits for the start: used once.
class Starter {
 public:
  explicit Starter(Fd socket) : socket_(std::move(socket)) {}
  void tell(std::string_view bytes) {
    if (!socket_) return;
    // A full socket buffer holds far more than this, and nobody may read it any more.
    (void)::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    // The stage, a copy of this process, has the socket open, too.
    ::shutdown(socket_.get(), SHUT_RDWR);
    socket_.reset();
  }

 private:
  Fd socket_;
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
  KeptOutput(const fs::path& folder, std::uint64_t most_bytes) : log_(folder, most_bytes) {}
  void give_to(LocalRun& run) {
    run.fds.out = out_.write_end.get();
    run.fds.err = err_.write_end.get();
  }
  /// The stage has its copies: when those are closed, the pipes end.
  void forget_write_ends() {
    out_.write_end.reset();
    err_.write_end.reset();
  }
  std::vector<RunEvents::Reader> readers() {
    return {{out_.read_end.get(), [this] { return take(out_.read_end, LogStream::out); }},
            {err_.read_end.get(), [this] { return take(err_.read_end, LogStream::err); }}};
  }
  RecordedLog finish() { return log_.finish(); }

 private:
  bool take(const Fd& fd, LogStream stream) {
    ssize_t count = 0;
    while ((count = ::read(fd.get(), buffer_.data(), buffer_.size())) < 0 && errno == EINTR) {
    }
    if (count <= 0) return false;
    log_.write(stream, {buffer_.data(), static_cast<std::size_t>(count)});
    return true;
  }

  LogWriter log_;
  Pipe out_ = make_pipe();
  Pipe err_ = make_pipe();
  std::array<char, 65536> buffer_{};
};

std::vector<PlacedOutput> outputs_of(const DetachedRun& request) {
  std::vector<std::string> paths;
  for (const DeclaredOutput& one : request.start.outputs) paths.push_back(one.path);
  return placed_outputs(request.run, paths);
}

/// A start that failed is recorded, as in the foreground.
RunOutcome run_and_keep(DetachedRun& request, RunRecorder& recorder, Starter& starter) {
  const std::vector<PlacedOutput> outputs = outputs_of(request);
  KeptOutput output{log_folder(recorder.folder()), request.most_log_bytes};
  output.give_to(request.run);
  RunEvents events;
  events.started = [&] {
    recorder.started();
    starter.tell(to_bytes({{"id", recorder.id()}}));
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
  try {
    const RunOutcome outcome = run_local(request.run, std::move(events));
    recorder.ended(
        outcome, [&] { return read_outputs(outputs); }, output.finish());
    return outcome;
  } catch (const Error& error) {
    recorder.gave_up(error, request.failure_status, output.finish());
    throw;
  }
}

void supervise_run(DetachedRun request, Starter& starter) {
  try {
    Store store{request.store};
    const TemporaryFolder scratch = store.scratch();
    request.run.scratch = scratch.path();
    if (const auto& switches = request.start.deterministic) {
      make_deterministic(request.run, switches->seed, caller_variables());
    }
    RunRecorder recorder{runs_folder(store.root()), request.start};
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

StartedRun start_detached_run(const DetachedRun& run) {
  constexpr int kBeyondOthers = 16;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  const Fd socket{ends[0]};
  Fd theirs{ends[1]};
  // dup2(2) to the same number would leave it close-on-exec.
  Fd moved{::fcntl(theirs.get(), F_DUPFD_CLOEXEC, kBeyondOthers)};
  theirs.reset();
  if (!moved) throw os_error(errno, "cannot copy a descriptor");
  Command command;
  command.argv = {own_executable().string(), std::string(kArgument)};
  command.extra_fds = {{moved.get(), kSocket}};
  Child child{command};
  moved.reset();
  send_all(socket.get(), render_detached(run));
  FdSource source{socket.get()};
  const std::string answer = read_all(source, std::uint64_t{1} << 20);
  (void)child.wait();
  if (answer.empty()) {
    throw failure("run-failed", "the run's supervisor was killed before the command ran");
  }
  const Json value = Json::from_cbor(answer.begin(), answer.end(), true, false);
  if (value.is_object() && value.contains("id")) return {value.at("id"), std::nullopt};
  return {"", parse_stage_outcome(answer).run};
}

std::optional<int> detached_main(int argc, char** argv) {
  if (argc != 2 || argv[1] != kArgument) return std::nullopt;
  ::fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  // Whoever started us waits for our end; the run goes on in a session that has no terminal and
  // whose leader is gone, so that it cannot get one.
  ::setsid();
  const pid_t pid = ::fork();
  if (pid != 0) ::_exit(pid < 0 ? 1 : 0);
  FdSource source{kSocket};
  const std::string request = read_all(source, kMostRequest);
  Starter starter{Fd{kSocket}};
  supervise_run(parse_detached(request), starter);
  return 0;
}

}  // namespace mlenv
