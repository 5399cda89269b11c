#include "runner/job/attached_job.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "images/store.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/job/preflight.hpp"
#include "runner/local/control.hpp"
#include "runner/local/stage.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kArgument = "__drive-beside";
constexpr std::uint64_t kMostRequest = std::uint64_t{64} << 20;

/// The way back to whoever started the controller.
class Teller {
 public:
  explicit Teller(Fd socket) : socket_(std::move(socket)) {}
  void say(const Json& value) const {
    const std::vector<std::uint8_t> cbor = Json::to_cbor(value);
    say(std::string(cbor.begin(), cbor.end()));
  }
  void say(const std::string& bytes) const {
    const std::string frame = framed(bytes);
    // Whoever would read it is gone where that fails, and this process ends with it.
    (void)::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  }

 private:
  Fd socket_;
};

RunOutcome outcome_of(const JobOutcome& job) {
  RunOutcome run;
  run.exit.code = job.exit_code;
  run.exit.signalled = job.signal != 0 && job.exit_code == 128 + job.signal;
  run.ended_by = job.ended_by;
  run.attempts = job.attempts.size();
  return run;
}

void drive_beside(DetachedJob job, const Teller& teller) {
  DrivePlan& plan = job.file.plan;
  Store store{job.file.store};
  const std::unique_ptr<NodeStarter> starter =
      starter_of(job.file.engine, job.file.store, plan.job.nodes.most, std::move(job.hosts));
  job.start.launch =
      recorded_launch(plan.job, job.file.engine, starter->offers(), plan.code_digest);
  RunRecorder recorder{runs_folder(job.file.store), job.start};
  plan.id = recorder.id();
  teller.say(Json{{"id", plan.id}});
  const Fd control = listen_for_control(recorder.folder());
  DriveEvents events;
  events.control = control.get();
  events.notice = [&](const std::string& text) { teller.say(Json{{"notice", text}}); };
  events.preflight = [&](const Preflight& found) {
    for (const std::string& note : preflight_notes(found)) events.notice(note);
  };
  events.started = [&](std::uint64_t, std::uint64_t) { teller.say(Json{{"started", true}}); };
  const JobOutcome outcome = drive_recorded(store, *starter, plan, recorder, events);
  teller.say(render_outcome(outcome_of(outcome)));
}

void drive_for(const Teller& teller, const std::string& request) {
  try {
    drive_beside(parse_detached_job(request), teller);
  } catch (const Error& error) {
    teller.say(render_outcome(error));
  } catch (const std::exception& error) {
    teller.say(render_outcome(Error(Kind::internal, "internal", error.what())));
  }
}

}  // namespace

AttachedJob::AttachedJob(const DetachedJob& job, std::function<void(const std::string&)> notice)
    : notice_(std::move(notice)) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  socket_ = Fd{ends[0]};
  const Fd theirs{ends[1]};
  const Fd null = open_file("/dev/null", O_RDWR);
  Command command;
  command.argv = {own_executable().string(), std::string(kArgument), std::to_string(::getpid())};
  command.stdin_fd = theirs.get();
  command.stdout_fd = null.get();
  command.stderr_fd = null.get();
  child_.emplace(command);
  send_all(socket_.get(), render_detached_job(job));
}

bool AttachedJob::hear() {
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while ((count = ::read(socket_.get(), buffer.data(), buffer.size())) < 0 && errno == EINTR) {
  }
  if (count <= 0) {
    (void)child_->wait();
    return false;
  }
  bytes_.append(buffer.data(), static_cast<std::size_t>(count));
  while (const std::optional<std::string> frame = take_frame(bytes_)) take(*frame);
  return true;
}

void AttachedJob::take(const std::string& frame) {
  const Json value = Json::from_cbor(frame.begin(), frame.end(), true, false);
  if (value.is_object() && value.contains("id")) {
    id_ = value.at("id");
  } else if (value.is_object() && value.contains("notice")) {
    notice_(value.at("notice"));
  } else if (value.is_object() && value.contains("started")) {
    started_ = true;
  } else {
    try {
      outcome_ = parse_stage_outcome(frame).run;
    } catch (const Error& error) {
      failure_ = error;
    }
  }
}

void AttachedJob::kill() { child_->signal(SIGKILL); }

std::optional<int> attached_job_main(int argc, char** argv) {
  constexpr int kBeyondStreams = 3;
  if (argc != 3 || argv[1] != kArgument) return std::nullopt;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != argv[2]) return 1;  // it was gone before
  const Teller teller{Fd{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, kBeyondStreams)}};
  FdSource source{STDIN_FILENO};
  const std::string request = read_all(source, kMostRequest);
  const Fd null = open_file("/dev/null", O_RDWR);
  ::dup2(null.get(), STDIN_FILENO);
  drive_for(teller, request);
  return 0;
}

}  // namespace mlenv::job
