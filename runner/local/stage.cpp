#include "runner/local/stage.hpp"
#include "runner/local/patient_hooks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <utility>

#include "base/printable.hpp"
#include "runner/engine/engine_run.hpp"
#include "runner/local/apparmor.hpp"
#include "runner/local/bundle.hpp"
#include "runner/local/devices.hpp"
#include "runner/local/exec_server.hpp"
#include "runner/local/give_back.hpp"
#include "runner/local/group_sweep.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/local/home.hpp"
#include "runner/local/job.hpp"
#include "runner/local/job_checks.hpp"
#include "runner/local/job_user.hpp"
#include "runner/local/limits.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/mount_points.hpp"
#include "runner/local/network.hpp"
#include "runner/local/own_groups.hpp"
#include "runner/local/own_results.hpp"
#include "runner/local/prepared_run.hpp"
#include "runner/local/program.hpp"
#include "runner/local/run_names.hpp"
#include "runner/local/seccomp.hpp"
#include "runner/local/signals.hpp"
#include "runner/local/supervise.hpp"
#include "runner/local/terminal.hpp"
#include "runner/local/throwaway.hpp"
#include "runner/local/user_map.hpp"
#include "runner/record/kept_layers.hpp"
#include "runner/vm/vm_run.hpp"

namespace mlenv {
namespace {

/// From here on signals wait until `supervise` passes them on.
Fd hold_signals() {
  const sigset_t set = forwarded_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Fd fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) throw os_error(errno, "cannot watch for signals");
  return fd;
}

void write_complaint(const std::string& line, int fd = STDERR_FILENO) {
  const std::string text = "mlenv: " + printable(line) + "\n";  // an image may have named it
  write_all(fd, as_bytes(text));
}

/// The image's layers, and a writable one: thrown away with the scratch folder, or kept.
Overlay overlay_of(const LocalRun& run, Identity identity) {
  Overlay overlay{run.trees, run.scratch, identity != Identity::root, run.overlay};
  if (!run.layer) return overlay;
  const fs::path& kept = run.layer->folder;
  require_same_ids(kept, read_file("/proc/self/uid_map") + read_file("/proc/self/gid_map"));
  if (!run.layer->to_write) {
    if (fs::is_directory(upper_of(kept))) overlay.lowers.push_back(upper_of(kept));
    return overlay;
  }
  overlay.lasting = true;
  // By links: the paths that the kernel takes are short (overlay.hpp).
  for (const fs::path& folder : {upper_of(kept), work_of(kept)}) {
    make_folders(folder);
    fs::create_directory_symlink(folder, run.scratch / folder.filename());
  }
  return overlay;
}

struct Stage {
  Identity identity = Identity::single_id;
  fs::path root;  ///< the mounted overlay
  fs::path private_folder;
  std::optional<NetworkProgram> network;  ///< of a private one
};

void set_host_name(const ImageRoot& image, const JobOptions& options, Bundle& bundle) {
  if (!options.hostname) return;
  bundle.hostname = *options.hostname;
  // So that a program that looks its own host up finds it.
  image.write("/etc/hosts",
              image.read("/etc/hosts").value_or("") + "127.0.1.1 " + bundle.hostname + "\n");
}

/// What of the options concerns files: folders in memory, and with a read-only root a home that can
/// be written, which is the throwaway layer's own.
void add_folders(const JobOptions& options, const ImageRoot& image, Bundle& bundle) {
  for (const MemoryFolder& one : options.tmpfs) {
    CdiMount folder;
    folder.path = one.target;
    folder.host_path = folder.type = "tmpfs";
    folder.options = one.options;
    bundle.file_systems.push_back(std::move(folder));
  }
  bundle.read_only = options.read_only;
  const std::string& home = bundle.user.home;
  if (options.read_only) bundle.mounts.push_back({image.on_host(home), home});
}

/// In a layer that was kept nothing goes on of what mlenv put there at an earlier start.
std::vector<std::string> machine_of_today(const LocalRun& run, const ImageRoot& image,
                                          Machine machine) {
  if (!run.layer) return bring_machine(image, machine);
  const fs::path& layer = run.layer->folder;
  const std::vector<std::string> before = own_files(layer);
  take_back(image, before);
  std::vector<std::string> written;
  machine.written = &written;
  std::vector<std::string> variables = bring_machine(image, machine);
  if (run.layer->to_write && written != before) note_own_files(layer, written);
  return variables;
}

/// What the runtime starts first, in a folder that every user of the container may look into.
void write_first_program(const fs::path& folder, const Bundle& bundle) {
  const fs::path program = folder / kFirstProgram;
  const fs::path filter = folder / kCallFilter;
  write_file(program, keeper_program(), /*durable=*/false);
  write_file(filter, container_filter(bundle.architecture, bundle.identity == Identity::single_id),
             false);
  // Whatever the umask is.
  (void)::chmod(folder.c_str(), 0755);
  (void)::chmod(filter.c_str(), 0444);
  if (::chmod(program.c_str(), 0111) != 0) throw os_error(errno, "cannot set a mode");
}

Bundle make_bundle(const LocalRun& run, const ImageRoot& image, const Stage& stage) {
  const bool single_id = stage.identity == Identity::single_id;
  Bundle bundle;
  bundle.id = random_container_name();
  bundle.hostname = host_name();
  bundle.architecture = run.config.architecture;
  bundle.identity = stage.identity;
  bundle.apparmor_profile = loaded_container_profile();
  // runc takes no path with a link, and the store's may have one.
  bundle.root = fs::canonical(stage.root);
  bundle.user = job_user(run, image, single_id);
  if (stage.identity == Identity::kept_id) require_mapped(bundle.user);
  give_home(bundle.user, image);
  const Variables caller = caller_variables();
  const fs::path machine_folder = stage.private_folder / "machine";
  make_folders(machine_folder);
  write_first_program(machine_folder, bundle);
  const std::vector<std::string> machine =
      machine_of_today(run, image, {"/", caller, machine_folder, single_id});
  set_host_name(image, run.options, bundle);
  if (stage.network) {
    image.write("/etc/resolv.conf", private_resolver(image.read("/etc/resolv.conf").value_or(""),
                                                     stage.network->is_pasta));
  }
  bundle.argv = job_argv(run);
  bundle.env = job_environment(run, machine, caller, bundle.user.home);
  bundle.workdir = job_workdir(run);
  add_folders(run.options, image, bundle);
  add_devices(run.devices, bundle);  // first: the person's own mounts take their place
  std::vector<Mount> mounts =
      with_own_results(run, job_mounts(run), stage.private_folder / "results");
  if (run.throwaway_mounts) {
    mounts = under_throwaway_layers(run, mounts, stage.identity != Identity::root);
  }
  bundle.mounts.insert(bundle.mounts.end(), mounts.begin(), mounts.end());
  bundle.mounts.insert(bundle.mounts.begin(), {machine_folder, std::string(kMachineTarget), true});
  bundle.terminal = run.terminal;
  if (run.terminal) {
    const winsize size = terminal_size();
    bundle.rows = size.ws_row;
    bundle.columns = size.ws_col;
  }
  bundle.ulimits = run.options.ulimits;
  bundle.shm_bytes = run.options.shm_bytes;
  return bundle;
}

/// Tells mlenv; nobody reads it when that is gone.
void tell_caller(int socket, std::string_view bytes) {
  const std::string frame = framed(bytes);
  (void)::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL);
}

/// Where the run's own complaints go: its log, for one in the background.
void complain_of(const LocalRun& run, const std::string& line) {
  write_complaint(line, run.fds.err >= 0 ? run.fds.err : STDERR_FILENO);
}

/// In words, where the kernel says more than the status does.
void tell_of_memory(const LocalRun& run) {
  const auto& most = run.options.limits.memory_bytes;
  complain_of(run,
              "the kernel killed a process of this run for want of memory" +
                  (most ? fmt::format("; `--memory` allows {} MiB", *most >> 20U) : std::string()));
}

void tell_of_the_rest(const LocalRun& run) {
  complain_of(run,
              "a process of this run does not end, though it was killed: it is left to the kernel, "
              "which may wait for storage or a driver");
}

void tell_of_time(const LocalRun& run) {
  constexpr double kMilliseconds = 1000;
  const auto allowed =
      static_cast<double>(run.life.timeout.value_or(std::chrono::milliseconds{}).count());
  complain_of(run,
              fmt::format("this run is ended: `--timeout` allows {} s", allowed / kMilliseconds));
}

/// The container's namespaces, limits, network, overlay and bundle, in which the command is run
/// once or more often.
class BuiltinRun final : public PreparedRun {
 public:
  explicit BuiltinRun(const LocalRun& run) : run_(run), runtime_(find_runtime(run.runtime)) {
    if (run.options.network == "private") stage_.network = find_network_program();
    check_ports(run.options.ports);
    check_ulimits(run.options.ulimits);
    // Before the namespaces, and outliving what is in it.
    if (run.options.limits != JobLimits{}) limits_.emplace(run.options.limits);
    stage_.identity = enter_namespaces(shown_as(run));
    if (runtime_.is_crun) tell_crun_of_groups();
    // Its init gets ready beside all that follows.
    if (run.options.network == "host") processes_.emplace();
    stage_.root = mount_overlay(overlay_of(run, stage_.identity));
    upper_ = run.layer && run.layer->to_write ? upper_of(run.layer->folder) : run.scratch / "upper";
    stage_.private_folder = mount_private_folder(run.scratch);
    const ImageRoot image{stage_.root};
    bundle_ = make_bundle(run, image, stage_);
    if (runtime_.is_crun) {
      for (CdiHook& hook : bundle_.hooks) hook = patient_hook(hook);
    }
    check_system_folders(image);
    check_mounts(bundle_, image);
    check_workdir(bundle_, image);
    held_.hold(run, bundle_.mounts, stage_.private_folder / "mounts");
    if (stage_.identity == Identity::kept_id) make_mount_points(bundle_, image);
    refusal_ = cannot_run(bundle_, image);
    if (!refusal_) make_network();
  }
  BuiltinRun(const BuiltinRun&) = delete;
  BuiltinRun& operator=(const BuiltinRun&) = delete;
  ~BuiltinRun() override {
    processes_.reset();
    give_layer_back();
  }
  const std::optional<CannotRun>& refusal() const override { return refusal_; }

  Attempt run(JobWatch& watch, const std::function<void()>& started) override {
    bundle_.id = random_container_name();
    bundle_.group = group_folder_ + bundle_.id;
    const fs::path folder = stage_.private_folder / "bundle";
    Attempt attempt;
    Container container{bundle_.id, bundle_.group, folder, stage_.identity, run_.terminal};
    if (!processes_) processes_.emplace(bundle_.network_namespace);
    if (std::exchange(again_, true)) look_again();
    make_workdir(bundle_, ImageRoot{stage_.root});
    remove_tree(folder);
    make_folders(folder);
    bundle_.pid_namespace = processes_->path();
    write_file(folder / "config.json", render_bundle(bundle_), false);
    if (::chdir("/") != 0) throw os_error(errno, "cannot enter `/`");
    container.stdout_fd = run_.fds.out;
    container.stderr_fd = run_.fds.err;
    ExecServer server{runtime_, container, bundle_, limits()};
    const Meanwhile meanwhile{
        [&] {
          attempt.started = true;
          started();
        },
        [&](const ExecRequest& request, std::vector<Fd> files, Fd connection) {
          server.start(request, std::move(files), std::move(connection));
        },
        limits(), what_is_left_to_do(container), run_.fds.layer};
    attempt.end = supervise(runtime_, container, *processes_, watch, meanwhile);
    processes_.reset();
    sweep_own_groups();
    if (attempt.end.not_started) tell_why(*attempt.end.not_started, attempt);
    return attempt;
  }

 private:
  void tell_why(const keeper::Failed& problem, Attempt& attempt) const {
    const std::optional<CannotRun> refused = refused_by_kernel(problem, bundle_.argv.front());
    if (!refused) throw cannot_enter(bundle_.workdir, problem);
    complain_of(run_, refused->why);
    attempt.end.exit = {refused->status, false};
    attempt.started = false;
  }

  /// An earlier attempt may have put links there.
  void look_again() {
    held_.renew(bundle_.mounts);
    Bundle named = bundle_;
    named.mounts = held_.named(std::move(named.mounts));
    const ImageRoot image{stage_.root};
    check_system_folders(image);
    check_mounts(named, image);
  }

  /// When we are killed. Most ordinary users' runs leave nothing, and need no process for it.
  std::function<void()> what_is_left_to_do(const Container& container) const {
    const bool leaves_groups = stage_.identity == Identity::root || limits_.has_value();
    const bool leaves_layer = stage_.identity == Identity::kept_id || run_.fds.layer >= 0;
    if (!leaves_groups && !leaves_layer) return {};
    return [this, &container] {
      give_layer_back();
      remove_groups_of(container);
    };
  }

  /// Which limits may have made for us.
  void tell_crun_of_groups() {
    if (stage_.identity != Identity::root) return show_own_groups(false);
    if (limits_) limits_->enter();
    group_folder_ = own_unified_path(host_sources("/", "/tmp"));
    if (limits_) limits_->leave();
    if (!group_folder_.empty()) return;
    if (limits_) {
      throw failure("no-limit", "crun cannot apply limits where control groups are of version 1")
          .hint(find_program("runc") ? "leave `--runtime crun` out, or write `--runtime runc`"
                                     : "let root run `apt-get install runc`, which can");
    }
    show_own_groups(true);
  }

  /// Where runc may have made the container's: below ours, or those of its limits.
  std::vector<fs::path> likely_groups() const {
    std::vector<fs::path> folders = all_own_groups(host_sources("/", "/tmp"));
    if (limits_) {
      for (fs::path& one : limits_->folders()) folders.push_back(std::move(one));
    }
    for (fs::path& one : folders) one /= bundle_.group;
    return folders;
  }

  /// When we were killed. What the runtime wrote of its groups may be gone by then: mlenv removes
  /// our folders, which takes away what is mounted on them.
  void remove_groups_of(const Container& container) const noexcept {
    // The kernel lets a process go before it lets its group go, and tells nobody of the latter.
    constexpr int kTries = 500;
    constexpr int kPause = 10;  // milliseconds
    try {
      const bool is_guess = stage_.identity == Identity::root && !runtime_.is_crun;
      const std::vector<fs::path> likely = is_guess ? likely_groups() : std::vector<fs::path>{};
      const auto are_gone = [&] {
        const bool gone = is_guess ? remove_groups(likely) : remove_groups(runtime_, container);
        return gone && (!limits_ || limits_->remove());
      };
      for (int i = 0; i < kTries && !are_gone(); ++i) ::poll(nullptr, 0, kPause);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
    }
  }

  /// So that who has no such ids can remove it.
  void give_layer_back() const noexcept {
    if (stage_.identity == Identity::kept_id) give_back(upper_, bundle_.user);
  }

  const LimitGroup* limits() const { return limits_ ? &*limits_ : nullptr; }

  /// The same one in all attempts.
  void make_network() {
    if (run_.options.network == "host") return;
    const fs::path name_space = stage_.private_folder / "network";
    make_network_namespace(name_space);
    bundle_.network_namespace = name_space;
    if (!stage_.network) return;
    network_.emplace(*stage_.network, name_space, stage_.private_folder, run_.options.ports,
                     stage_.identity);
  }

  const LocalRun& run_;
  Runtime runtime_;
  fs::path upper_;  ///< what is written
  std::optional<LimitGroup> limits_;
  Stage stage_;
  std::string group_folder_;  ///< before the name of a container's group
  Bundle bundle_;
  HeldMounts held_;
  bool again_ = false;                     ///< a first attempt has begun
  std::optional<PidNamespace> processes_;  ///< the next attempt's
  std::optional<PrivateNetwork> network_;
  std::optional<CannotRun> refusal_;
};

std::unique_ptr<PreparedRun> made_ready(const LocalRun& run, int signals, int socket) {
  if (run.vm) return std::make_unique<VmRun>(run, socket, signals);
  if (run.engine) return std::make_unique<EngineRun>(run, socket, signals);
  return std::make_unique<BuiltinRun>(run);
}

/// A run in the background complains to whoever started it until it runs, and to nobody then.
void leave_streams() {
  const Fd null = open_file("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null.get(), fd);
}

StageOutcome run_container(const LocalRun& run, int signals, int socket) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<PreparedRun> prepared = made_ready(run, signals, socket);
  const auto started = [&] {
    tell_caller(socket, render_event(std::nullopt));
    if (run.fds.out >= 0) leave_streams();
  };
  if (const auto& refusal = prepared->refusal()) {
    write_complaint(refusal->why);
    return {{{refusal->status, false}}, refusal->why};
  }
  JobWatch watch{{signals, socket, run.fds.control}, run.life};
  BackOff back_off;
  RunOutcome outcome;
  for (outcome.attempts = 1;; ++outcome.attempts) {
    const auto began = Clock::now();
    const PreparedRun::Attempt attempt = prepared->run(watch, started);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    outcome.exit = attempt.end.exit;
    outcome.out_of_memory = attempt.end.out_of_memory;
    if (outcome.out_of_memory) tell_of_memory(run);
    if (watch.gave_up()) tell_of_the_rest(run);
    if (const int number = watch.killed_for_signal();
        number != 0 && outcome.exit == Exit{128 + SIGKILL, true}) {
      outcome.exit.code = 128 + number;
    }
    const bool again = attempt.started && !attempt.last && !watch.must_end() &&
                       run.life.restart.again(attempt.end.exit, outcome.attempts);
    if (again || outcome.attempts > 1) {
      tell_caller(socket, render_event(AttemptEnd{outcome.attempts, attempt.end.exit, took}));
    }
    if (again) watch.pause(back_off.after(took));
    if (!again || watch.must_end()) break;
  }
  outcome.ended_by = watch.ended_by();
  outcome.usage = prepared->usage();
  outcome.vm = prepared->vm();
  if (outcome.ended_by == EndedBy::timeout) {
    outcome.exit = {kTimedOutStatus, false};
    tell_of_time(run);
  }
  return {outcome, {}};
}

}  // namespace

int run_stage(const LocalRun& run, int socket) noexcept {
  try {
    const Fd signals = hold_signals();
    const StageOutcome outcome = run_container(run, signals.get(), socket);
    tell_caller(socket, render_outcome(outcome.run, outcome.complaint));
    return outcome.run.exit.code;
  } catch (const Error& error) {
    tell_caller(socket, render_outcome(error));
  } catch (const std::exception& error) {
    tell_caller(socket, render_outcome(Error(Kind::internal, "internal", error.what())));
  }
  return 125;
}

std::optional<int> run_main(int argc, char** argv) {
  if (argc != 2 || argv[1] != kStageArgument) return std::nullopt;
  ::fcntl(kStageSocket, F_SETFD, FD_CLOEXEC);
  FdSource source{kStageSocket};
  const LocalRun run = parse_request(read_all(source, std::uint64_t{64} << 20));
  for (const int fd : {run.fds.control, run.fds.out, run.fds.err, run.fds.layer}) {
    if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return run_stage(run, kStageSocket);
}

}  // namespace mlenv
