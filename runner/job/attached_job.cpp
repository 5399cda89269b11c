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
#include "base/json.hpp"
#include "images/store.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/job/preflight.hpp"
#include "runner/local/control.hpp"
#include "runner/local/stage.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

constexpr std::string_view kDriveBesideArgument = "__drive-beside";
constexpr std::uint64_t kMostAttachedRequest = std::uint64_t{64} << 20;

/// The way back to whoever started the controller.
class Teller {
 public:
  explicit Teller(Fd socket) : socket_(std::move(socket)) {}
  void say(const json& value) const { say(cbor_bytes(value)); }
  void say(const std::string& bytes) const {
    const std::string frame = framed(bytes);
    // Whoever would read it is gone where that fails, and this process ends with it.
    (void)::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  }

 private:
  Fd socket_;
};

void drive_beside(DetachedJob job, const Teller& teller) {
  DrivePlan& plan = job.file.plan;
  Store store{job.file.store};
  const std::unique_ptr<NodeStarter> starter =
      starter_of(job.file.engine, job.file.store, plan.job.nodes.most, std::move(job.hosts));
  job.start.launch =
      recorded_launch(plan.job, job.file.engine, starter->offers(), plan.code_digest);
  RunRecorder recorder{runs_folder(job.file.store), job.start};
  plan.id = recorder.id();
  teller.say(json{{"id", plan.id}});
  const Fd control = listen_for_control(recorder.folder());
  DriveEvents events;
  events.control = control.get();
  events.notice = [&](const std::string& text) { teller.say(json{{"notice", text}}); };
  events.preflight = [&](const Preflight& found) {
    for (const std::string& note : preflight_notes(found)) events.notice(note);
  };
  events.started = [&](std::uint64_t, std::uint64_t) { teller.say(json{{"started", true}}); };
  const JobOutcome outcome = drive_recorded(store, *starter, plan, recorder, events);
  teller.say(render_outcome(as_run(outcome)));
}

void drive_attached(const Teller& teller, const std::string& request) {
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
  Fd socket{ends[0]};
  const Fd theirs{ends[1]};
  const Fd null = open_file("/dev/null", O_RDWR);
  Command command{Purpose{"job-supervisor"}};
  command.argv = {own_executable().string(), std::string(kDriveBesideArgument),
                  std::to_string(::getpid())};
  command.stdin_fd = theirs.get();
  command.stdout_fd = null.get();
  command.stderr_fd = null.get();
  Child child{command};
  send_all(socket.get(), render_detached_job(job));
  look_after(std::move(child), std::move(socket));
}

bool AttachedJob::take_own(const json& word) {
  if (!word.contains("notice")) return false;
  notice_(word.at("notice"));
  return true;
}

std::optional<int> attached_job_main(int argc, char** argv) {
  constexpr int kBeyondStreams = 3;
  if (argc != 3 || argv[1] != kDriveBesideArgument) return std::nullopt;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != argv[2]) return 1;  // it was gone before
  const Teller teller{Fd{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, kBeyondStreams)}};
  FdSource source{STDIN_FILENO};
  const std::string request = read_all(source, kMostAttachedRequest);
  const Fd null = open_file("/dev/null", O_RDWR);
  ::dup2(null.get(), STDIN_FILENO);
  drive_attached(teller, request);
  return 0;
}

}  // namespace mlenv::job
