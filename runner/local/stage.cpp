#include "runner/local/stage.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <random>

#include "runner/local/bundle.hpp"
#include "runner/local/devices.hpp"
#include "runner/local/exec_server.hpp"
#include "runner/local/job.hpp"
#include "runner/local/job_checks.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/program.hpp"
#include "runner/local/signals.hpp"
#include "runner/local/supervise.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace mlenv {
namespace {

Environment caller_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string random_id() {
  std::random_device device;
  return fmt::format("mlenv-{:08x}{:08x}", device(), device());
}

/// From here on signals wait until `supervise` passes them on.
Fd hold_signals() {
  const sigset_t set = forwarded_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Fd fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) throw os_error(errno, "cannot watch for signals");
  return fd;
}

void complain(const std::string& line) {
  const std::string text = "mlenv: " + line + "\n";
  write_all(STDERR_FILENO, as_bytes(text));
}

/// A folder in memory that nobody else sees and that vanishes with us: for what a run needs beside
/// the job's own files. (On a disk, making and removing them is a good part of the start-up time.)
fs::path mount_private_folder(const fs::path& scratch) {
  fs::path folder = scratch / "run";
  make_folders(folder);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) {
    throw failure("no-namespace", "cannot mount a tmpfs on `{}`", folder.string())
        .because(errno_text(errno));
  }
  return folder;
}

struct Stage {
  Identity identity = Identity::single_id;
  fs::path root;  ///< the mounted overlay
  fs::path private_folder;
};

Bundle make_bundle(const LocalRun& run, const ImageRoot& image, const Stage& stage) {
  const bool single_id = stage.identity == Identity::single_id;
  Bundle bundle;
  bundle.id = random_id();
  bundle.hostname = host_name();
  bundle.architecture = run.config.architecture;
  bundle.identity = stage.identity;
  bundle.root = stage.root;
  // With a single id there is but one user, the caller, and here they are root.
  bundle.user =
      resolve_user(single_id ? "" : run.config.user, image.read("/etc/passwd").value_or(""),
                   image.read("/etc/group").value_or(""));
  const Environment caller = caller_environment();
  const fs::path machine_folder = stage.private_folder / "machine";
  make_folders(machine_folder);
  const std::vector<std::string> machine =
      bring_machine(image, {"/", caller, machine_folder, single_id});
  bundle.argv = job_argv(run);
  bundle.env = job_environment(run, machine, caller, bundle.user.home);
  bundle.workdir = job_workdir(run);
  add_devices(run.devices, bundle);  // first: the person's own mounts take their place
  const std::vector<Mount> mounts = job_mounts(run);
  bundle.mounts.insert(bundle.mounts.end(), mounts.begin(), mounts.end());
  bundle.mounts.insert(bundle.mounts.begin(), {machine_folder, std::string(kMachineTarget), true});
  bundle.terminal = run.terminal;
  return bundle;
}

/// Tells mlenv; nobody reads it when that is gone.
void tell(int socket, std::string_view bytes) {
  const std::string frame = framed(bytes);
  (void)::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL);
}

/// The container's namespaces, overlay and bundle, in which the command is run once or more often.
class Prepared {
 public:
  explicit Prepared(const LocalRun& run) : run_(run), runtime_(find_runtime(run.runtime)) {
    stage_.identity = enter_namespaces();
    stage_.root =
        mount_overlay({run.trees, run.scratch, stage_.identity != Identity::root, run.overlay});
    stage_.private_folder = mount_private_folder(run.scratch);
    const ImageRoot image{stage_.root};
    bundle_ = make_bundle(run, image, stage_);
    check_mounts(bundle_, image);
    check_workdir(bundle_, image);
    refusal_ = cannot_run(bundle_, image);
  }
  const std::optional<CannotRun>& refusal() const { return refusal_; }

  struct Attempt {
    Exit exit;
    bool started = false;
  };
  /// The writable layer is as the attempt before left it; all else is made anew.
  Attempt run(JobWatch& watch, int socket) {
    bundle_.id = random_id();
    const fs::path folder = stage_.private_folder / "bundle";
    remove_tree(folder);
    make_folders(folder);
    Attempt attempt;
    PidNamespace processes;
    bundle_.pid_namespace = processes.path();
    write_file(folder / "config.json", render_bundle(bundle_), false);
    if (::chdir("/") != 0) throw os_error(errno, "cannot enter `/`");
    Container container{bundle_.id, folder, stage_.identity, run_.terminal};
    container.stdout_fd = run_.fds.out;
    container.stderr_fd = run_.fds.err;
    ExecServer server{runtime_, container, bundle_};
    const Meanwhile meanwhile{
        [&] {
          attempt.started = true;
          tell(socket, render_event(std::nullopt));
          if (run_.fds.out >= 0) leave_streams();
        },
        [&](const ExecRequest& request, std::vector<Fd> files, Fd connection) {
          server.start(request, std::move(files), std::move(connection));
        }};
    attempt.exit = supervise(runtime_, container, processes, watch, meanwhile);
    return attempt;
  }

 private:
  /// A run in the background complains to whoever started it until it runs, and to nobody then.
  static void leave_streams() {
    const Fd null = open_file("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null.get(), fd);
  }

  const LocalRun& run_;
  Runtime runtime_;
  Stage stage_;
  Bundle bundle_;
  std::optional<CannotRun> refusal_;
};

StageOutcome run_container(const LocalRun& run, int signals, int socket) {
  using Clock = std::chrono::steady_clock;
  Prepared prepared{run};
  if (const auto& refusal = prepared.refusal()) {
    complain(refusal->why);
    return {{{refusal->status, false}}, refusal->why};
  }
  JobWatch watch{{signals, socket, run.fds.control}, run.life};
  BackOff back_off;
  RunOutcome outcome;
  for (outcome.attempts = 1;; ++outcome.attempts) {
    const auto began = Clock::now();
    const Prepared::Attempt attempt = prepared.run(watch, socket);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    outcome.exit = attempt.exit;
    const bool again = attempt.started && !watch.must_end() &&
                       run.life.restart.again(attempt.exit, outcome.attempts);
    if (again || outcome.attempts > 1) {
      tell(socket, render_event(AttemptEnd{outcome.attempts, attempt.exit, took}));
    }
    if (again) watch.pause(back_off.after(took));
    if (!again || watch.must_end()) break;
  }
  outcome.ended_by = watch.ended_by();
  if (outcome.ended_by == EndedBy::timeout) outcome.exit = {kTimedOutStatus, false};
  return {outcome, {}};
}

}  // namespace

int run_stage(const LocalRun& run, int socket) noexcept {
  try {
    const Fd signals = hold_signals();
    const StageOutcome outcome = run_container(run, signals.get(), socket);
    tell(socket, render_outcome(outcome.run, outcome.complaint));
    return outcome.run.exit.code;
  } catch (const Error& error) {
    tell(socket, render_outcome(error));
  } catch (const std::exception& error) {
    tell(socket, render_outcome(Error(Kind::internal, "internal", error.what())));
  }
  return 125;
}

std::optional<int> run_main(int argc, char** argv) {
  if (argc != 2 || argv[1] != kStageArgument) return std::nullopt;
  ::fcntl(kStageSocket, F_SETFD, FD_CLOEXEC);
  FdSource source{kStageSocket};
  const LocalRun run = parse_request(read_all(source, std::uint64_t{64} << 20));
  for (const int fd : {run.fds.control, run.fds.out, run.fds.err}) {
    if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return run_stage(run, kStageSocket);
}

}  // namespace mlenv
