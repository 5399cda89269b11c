#include "runner/job/detached_job.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/process.hpp"
#include "images/store.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/job/preflight.hpp"
#include "runner/launch/local_nodes.hpp"
#include "runner/launch/ssh_nodes.hpp"
#include "runner/local/control.hpp"
#include "runner/local/stage.hpp"
#include "runner/node/program.hpp"
#include "runner/node/version.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

constexpr std::string_view kDriveArgument = "__drive";
constexpr std::uint64_t kMostJobRequest = std::uint64_t{64} << 20;

}  // namespace

std::string render_detached_job(const DetachedJob& job) {
  const std::string plan = render_plan_file(job.file);
  json hosts = json::array();
  for (const Host& one : job.hosts) {
    hosts.push_back({one.name, one.slots, one.address, one.user, one.port});
  }
  return cbor_bytes({{"plan", json::binary({plan.begin(), plan.end()})},
                     {"start", render_run_start(job.start)},
                     {"hosts", std::move(hosts)}});
}

DetachedJob parse_detached_job(std::string_view bytes) {
  const json value = json::from_cbor(bytes.begin(), bytes.end());
  const json::binary_t& plan = value.at("plan").get_binary();
  DetachedJob job;
  job.file = parse_plan_file(std::string(plan.begin(), plan.end()), "the request", own_version());
  job.start = parse_run_start(value.at("start").get<std::string>(), "the request");
  for (const json& one : value.at("hosts")) {
    job.hosts.push_back({one.at(0), one.at(1), one.at(2), one.at(3), one.at(4)});
  }
  return job;
}

namespace {

/// The mlenv that waits for the start.
class WaitingCaller {
 public:
  explicit WaitingCaller(Fd socket) : socket_(std::move(socket)) {}
  void notice(const std::string& text) { say(cbor_bytes({{"notice", text}})); }
  /// The last word.
  void tell(std::string_view bytes) {
    say(bytes);
    socket_.reset();
  }

  /// Whoever gives up before the job runs (Ctrl-C) does not want it: it ends as by SIGTERM.
  void add_to(std::vector<pollfd>& fds) const { fds.push_back({socket_.get(), 0, 0}); }
  void hear(const pollfd& fd) {
    if (fd.fd < 0 || (fd.revents & (POLLHUP | POLLERR)) == 0) return;
    socket_.reset();
    // To the process: a signal of this thread alone reaches no SignalQueue.
    (void)::kill(::getpid(), SIGTERM);
  }

 private:
  void say(std::string_view bytes) {
    if (!socket_) return;
    const std::string frame = framed(bytes);
    // Nobody may read it any more.
    (void)::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL);
  }
  Fd socket_;
};

void drive_job(DetachedJob job, WaitingCaller& waiting) {
  DrivePlan& plan = job.file.plan;
  Store store{job.file.store};
  const std::unique_ptr<NodeStarter> starter =
      starter_of(job.file.engine, job.file.store, plan.job.nodes.most, std::move(job.hosts));
  job.start.launch =
      recorded_launch(plan.job, job.file.engine, starter->offers(), plan.code_digest);
  RunRecorder recorder{runs_folder(job.file.store), job.start};
  plan.id = recorder.id();
  need_only_what_it_needs(store, plan);  // it may wait for weeks
  const Fd control = listen_for_control(recorder.folder());
  DriveEvents events;
  events.control = control.get();
  events.poll_for = [&](std::vector<pollfd>& fds) { waiting.add_to(fds); };
  events.polled = [&](const pollfd* fds) { waiting.hear(*fds); };
  events.notice = [&](const std::string& text) { waiting.notice(text); };
  events.preflight = [&](const Preflight& found) {
    for (const std::string& note : preflight_notes(found)) waiting.notice(note);
  };
  events.started = [&](std::uint64_t, std::uint64_t) {
    waiting.tell(cbor_bytes({{"id", plan.id}}));
  };
  WaitEvents waits;
  waits.notice = events.notice;
  waits.waiting = [&](bool begins) {
    if (begins) waiting.tell(cbor_bytes({{"id", plan.id}}));
  };
  waits.control = control.get();
  if (wait_recorded(job.file.store, job.start, recorder, std::move(waits))) return;
  const JobOutcome outcome = drive_recorded(store, *starter, plan, recorder, std::move(events));
  waiting.tell(cbor_bytes({{"id", plan.id}, {"over", outcome.exit_code}}));
}

void drive_detached(WaitingCaller& waiting, const std::string& request) {
  try {
    drive_job(parse_detached_job(request), waiting);
  } catch (const Error& error) {
    waiting.tell(render_outcome(error));
  } catch (const std::exception& error) {
    waiting.tell(render_outcome(Error(Kind::internal, "internal", error.what())));
  }
}

}  // namespace

StartedJob start_detached_job(const DetachedJob& job,
                              const std::function<void(const std::string&)>& notice) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw os_error(errno, "cannot make a socket");
  }
  const Fd socket{ends[0]};
  Fd theirs{ends[1]};
  start_detached(Purpose{"job-supervisor"},
                 {own_executable().string(), std::string(kDriveArgument)}, theirs.get());
  theirs.reset();
  send_all(socket.get(), render_detached_job(job));
  std::string bytes;
  std::array<char, 4096> buffer{};
  while (true) {
    while (const std::optional<std::string> frame = take_frame(bytes)) {
      const json value = json::from_cbor(frame->begin(), frame->end(), true, false);
      if (value.is_object() && value.contains("notice")) {
        notice(value.at("notice"));
      } else if (value.is_object() && value.contains("id")) {
        StartedJob started{value.at("id"), std::nullopt};
        if (value.contains("over")) started.over = value.at("over").get<int>();
        return started;
      } else {
        (void)parse_stage_outcome(*frame);  // throws what it holds
      }
    }
    const ssize_t count = ::read(socket.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
  throw failure("run-failed", "the job's controller was killed before a rank ran");
}

// Its standard input is the socket; it is in a session of its own already (start_detached).
std::optional<int> detached_job_main(int argc, char** argv) {
  constexpr int kBeyondStreams = 3;
  if (argc != 2 || argv[1] != kDriveArgument) return std::nullopt;
  WaitingCaller waiting{Fd{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, kBeyondStreams)}};
  FdSource source{STDIN_FILENO};
  const std::string request = read_all(source, kMostJobRequest);
  const Fd null = open_file("/dev/null", O_RDWR);
  ::dup2(null.get(), STDIN_FILENO);
  (void)!::chdir("/");
  drive_detached(waiting, request);
  return 0;
}

std::unique_ptr<NodeStarter> starter_of(const std::string& engine, const fs::path& store,
                                        std::uint64_t most_nodes, std::vector<Host> hosts) {
  if (engine == "ssh") return ssh_nodes({std::move(hosts), node_program()});
  return local_nodes({most_nodes, store, {}});
}

}  // namespace mlenv::job
