#include "runner/engine/engine_run.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/beneath.hpp"
#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/paths.hpp"
#include "runner/engine/engine_devices.hpp"
#include "runner/engine/engine_exec.hpp"
#include "runner/engine/engine_files.hpp"
#include "runner/engine/engine_life.hpp"
#include "runner/engine/kept_process.hpp"
#include "runner/engine/mount_points.hpp"
#include "runner/local/devices.hpp"
#include "runner/local/exec_server.hpp"
#include "runner/local/first_report.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/local/home.hpp"
#include "runner/local/job.hpp"
#include "runner/local/job_checks.hpp"
#include "runner/local/job_user.hpp"
#include "runner/local/limits.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/network.hpp"
#include "runner/local/own_results.hpp"
#include "runner/local/run_names.hpp"
#include "runner/local/seccomp.hpp"
#include "runner/local/terminal.hpp"

namespace mlenv {
namespace {

/// An ordinary user whose containers a daemon of root's makes: they are themselves in there.
bool is_own_user(const LocalRun& run) {
  return !run.engine->rootless && ::geteuid() != 0 && !run.options.user;
}

ContainerUser own_user(const LocalRun& run, const ImageRoot& image) {
  const std::string passwd = image.read("/etc/passwd").value_or("");
  const std::string group = image.read("/etc/group").value_or("");
  ContainerUser user = resolve_user(fmt::format("{}:{}", ::geteuid(), ::getegid()), passwd, group);
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  user.groups.assign(groups.begin(), groups.begin() + std::max(0, count));
  add_groups(user, run.options.groups, group);
  return user;
}

bool may_raise_limits() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> held{};
  return ::syscall(SYS_capget, &head, held.data()) == 0 &&
         (held[0].effective & (1U << CAP_SYS_RESOURCE)) != 0;
}

/// Asked for a network that it does not have, a daemon without a bridge gives none, and says
/// nothing.
void require_bridge(const LocalRun& run) {
  if (run.options.network != "private" || run.engine->is_podman()) return;
  constexpr std::chrono::seconds kAnswer{60};
  if (ask(*run.engine, {"network", "inspect", "bridge"}, kAnswer).exit.code == 0) return;
  throw failure("no-network", "Docker's daemon has no network for a container of its own")
      .because("it was started without a bridge (`--bridge none`)")
      .hint("use the host's network, or leave `--runtime docker` out");
}

/// What is mounted at `target` in the container; none of the host's links are followed.
Fd mounted_at(const Fd& root, const std::string& target) {
  Fd fd = open_beneath(root.get(), target, O_RDONLY | O_DIRECTORY, Links::inside);
  struct statx status {};
  const bool is_mount = fd &&
                        ::statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) == 0 &&
                        (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  if (is_mount) return fd;
  throw failure("no-overlay", "the container has no throwaway layer at `{}`", target);
}

/// Of the container's control group at `path`; 0 where something else is there: a mount of the
/// person's may have links and pipes by the names of the kernel's files.
std::uint64_t kills_at(const Fd& root, const std::string& path) {
  const Fd group = open_beneath(root.get(), path, O_PATH | O_DIRECTORY, Links::inside);
  struct statfs system {};
  const bool is_group =
      group && ::fstatfs(group.get(), &system) == 0 &&
      (system.f_type == CGROUP_SUPER_MAGIC || system.f_type == CGROUP2_SUPER_MAGIC);
  return is_group ? memory_kills(descriptor_path(group)) : 0;
}

class EngineJob final : public WatchedJob {
 public:
  EngineJob(KeptContainer& container, const ContainerEngine& engine)
      : keeper_(container.keeper()), engine_(engine, container.client()) {}
  int ended_fd() const override { return keeper_.fd(); }
  int other_fd() const override { return engine_.fd(); }
  void look() override {
    if (!engine_.lives()) kill();
  }
  void signal(int number) override { keeper_.signal(number); }
  void kill() override { keeper_.signal(SIGKILL); }
  std::optional<pid_t> first_process() const override { return keeper_.process(); }
  bool has_engine() const { return !engine_.is_gone(); }

 private:
  const Keeper& keeper_;
  EngineLife engine_;
};

}  // namespace

EngineRun::EngineRun(const LocalRun& run, int socket, int signals) : run_(run) {
  // Podman hands hooks to its runtime.
  if (!run.engine->is_podman()) hook_work_ = work_of_hooks(run.devices.hooks);
  check_ports(run.options.ports);
  check_ulimits(run.options.ulimits);
  check_limits(*run.engine, run.options.limits);
  require_bridge(run);
  fill_container();
  make_mount_points(container_, memory_targets(container_));
  make_folders_of_run();
  try {
    if (run.options.read_only) look({socket, signals});
    start({socket, signals});
  } catch (const KeptContainer::NotStarted& told) {
    refusal_ = CannotRun{kSignalBase + told.signal, "the container had not started yet"};
  }
}

EngineRun::~EngineRun() {
  kept_.reset();
  if (!container_.layers.empty() && run_.engine->is_podman() && run_.engine->rootless) {
    take_over_layers();
  }
}

/// What the container's root gave to other ids of its own, the person could neither read nor
/// remove.
void EngineRun::take_over_layers() const {
  constexpr std::chrono::seconds kLongest{600};
  const std::string mounts = throwaway_mounts_folder(run_.scratch).string();
  try {
    const Captured done =
        ask(*run_.engine, {"unshare", "chown", "-hR", "0:0", "--", mounts}, kLongest, "/");
    if (done.exit.code != 0) log::debug("podman unshare: {}", done.err);
  } catch (const Error& error) {
    log::debug("podman unshare: {}", error.what());
  }
}

void EngineRun::make_folders_of_run() {
  container_.folder = run_.scratch / "shown";
  container_.settings = run_.scratch / "settings";
  make_folders(container_.folder);
  make_folders(container_.settings / "hooks");
  const fs::path keeper = container_.folder / kKeeperName;
  write_file(keeper, keeper_program(), /*durable=*/false);
  // Whatever the umask is: of a container's root only what others may do is certain.
  (void)::chmod(container_.folder.c_str(), 0755);
  (void)::chmod(keeper.c_str(), 0755);
  write_file(container_.settings / "seccomp.json",
             seccomp_text(run_.config.architecture, run_.engine->rootless), /*durable=*/false);
  for (std::size_t i = 0; i < run_.devices.hooks.size(); ++i) {
    write_file(container_.settings / "hooks" / fmt::format("{:03}.json", i),
               render_hook(run_.devices.hooks[i]), /*durable=*/false);
  }
}

void EngineRun::fill_container() {
  const JobOptions& options = run_.options;
  container_.name = random_container_name();
  container_.hostname = options.hostname.value_or(host_name());
  container_.options = options;
  container_.memory = options.tmpfs;
  container_.ulimits = with_own_limits(*run_.engine, options.ulimits, may_raise_limits());
  struct sysinfo memory {};
  ::sysinfo(&memory);
  container_.shm_bytes =
      options.shm_bytes.value_or(std::uint64_t{memory.totalram} * memory.mem_unit / 2);
  // The host's own devices, as for an ordinary user of the built-in runtime: they come first among
  // the mounts.
  Bundle given;
  given.identity = Identity::mapped;
  add_devices(run_.devices, given);
  container_.nodes = run_.devices.nodes;
  container_.has_hooks = !given.hooks.empty();
  device_groups_ = given.user.groups;
  const auto first = given.mounts.begin() + static_cast<std::ptrdiff_t>(container_.nodes.size());
  container_.mounts.assign(first, given.mounts.end());
  for (const CdiMount& one : given.file_systems) {
    if (one.type != "tmpfs") {
      throw failure("no-device", "{} cannot mount a file system of type `{}`", run_.engine->name,
                    one.type)
          .hint("leave `--runtime` out");
    }
    container_.memory.push_back({one.path, one.options});
  }
  const std::vector<Mount> own = own_mounts();
  container_.mounts.insert(container_.mounts.end(), own.begin(), own.end());
  container_.mounts =
      with_mounts_below(std::move(container_.mounts),
                        mounted_folders(read_file_if_exists("/proc/self/mountinfo").value_or("")));
}

std::vector<Mount> EngineRun::own_mounts() {
  std::vector<Mount> mounts = job_mounts(run_);
  require_own_results(run_, mounts);
  require_settled(run_, mounts);
  for (std::size_t i = 0; run_.throwaway_mounts && i < mounts.size(); ++i) {
    container_.layers.erase(mounts[i].target);  // of two at one target the later one counts
    if (mounts[i].read_only) continue;
    ThrowawayLayer layer = throwaway_layer(run_, i, mounts[i].source);
    mounts[i].source = layer.source;
    if (layer.upper.empty()) continue;
    make_folders(layer.work);
    container_.layers[mounts[i].target] = std::move(layer);
  }
  return mounts;
}

Bundle EngineRun::begin_bundle(const ImageRoot& image) {
  Bundle bundle;
  bundle.hostname = container_.hostname;
  bundle.user =
      is_own_user(run_) ? own_user(run_, image) : job_user(run_, image, run_.engine->rootless);
  give_home(bundle.user, image);
  return bundle;
}

/// An image that cannot be written gets its files as mounts: what they hold is found out in a first
/// container, which can.
void EngineRun::look(const GuestWatch& watch) {
  container_.options.read_only = false;
  MountWriter writer{run_.scratch / "files"};
  {
    KeptContainer first{*run_.engine, container_, watch};
    const ImageRoot image{Fd{::fcntl(first.root().get(), F_DUPFD_CLOEXEC, 3)}, writer};
    const Bundle bundle = begin_bundle(image);
    container_.home = bundle.user.home;
    (void)bring_machine(image, {"/", caller_variables(), container_.folder, run_.engine->rootless,
                                false, bundle.user.home});
  }
  const auto own = container_.mounts.begin();
  container_.mounts.insert(own, writer.mounts().begin(), writer.mounts().end());
  container_.options.read_only = true;
  container_.name = random_container_name();
}

void EngineRun::start(const GuestWatch& watch) {
  kept_.emplace(*run_.engine, container_, watch);
  for (const auto& [target, layer] : container_.layers) {
    for (const FreshPath& one : layer.fresh) {
      clear_fresh(mounted_at(kept_->root(), target), target, one);
    }
  }
  KeeperWriter writer{kept_->keeper(), container_.mounts};
  MountWriter nowhere{run_.scratch / "unused"};
  const bool fixed = container_.options.read_only;
  const ImageRoot image{Fd{::fcntl(kept_->root().get(), F_DUPFD_CLOEXEC, 3)},
                        fixed ? static_cast<ImageWriter&>(nowhere) : writer};
  bundle_ = begin_bundle(image);
  writer.belongs_to(bundle_.user);
  if (fixed) {
    kept_->keeper().make_folder(bundle_.user.home, {bundle_.user.uid, bundle_.user.gid, 1});
  }
  HookTerms terms{fixed, bundle_.user.uid == 0, {}, watch.socket, watch.signals};
  for (const CdiNode& one : run_.devices.nodes) terms.nodes.push_back(one.path);
  prepare(image, do_work_of_hooks(hook_work_, kept_->keeper(), image, terms));
}

void EngineRun::prepare(const ImageRoot& image, const std::vector<std::string>& library_folders) {
  const Variables caller = caller_variables();
  const std::vector<std::string> machine = bring_machine(
      image, {"/", caller, container_.folder, run_.engine->rootless, false, bundle_.user.home});
  if (run_.options.hostname) {
    image.write("/etc/hosts",
                image.read("/etc/hosts").value_or("") + "127.0.1.1 " + bundle_.hostname + "\n");
  }
  bundle_.argv = job_argv(run_);
  LocalRun with_folders = run_;
  auto& folders = with_folders.devices.library_folders;
  folders.insert(folders.end(), library_folders.begin(), library_folders.end());
  bundle_.env = job_environment(with_folders, machine, caller, bundle_.user.home);
  require_no_memory_limits(hook_work_, bundle_.env);
  bundle_.workdir = job_workdir(run_);
  bundle_.terminal = run_.terminal;
  bundle_.mounts = container_.mounts;
  check_workdir(bundle_, image);
  refusal_ = cannot_run(bundle_, image);
}

KeptProcess EngineRun::job() const {
  KeptProcess process = kept_process(bundle_, run_.fds);
  process.set_groups = !run_.engine->rootless;
  if (process.set_groups) {
    auto& groups = process.user.groups;
    groups.insert(groups.end(), device_groups_.begin(), device_groups_.end());
  }
  return process;
}

/// As the container itself sees its control group.
std::uint64_t EngineRun::memory_kills_so_far() const {
  if (run_.engine->controllers.empty()) return 0;
  return std::max(kills_at(kept_->root(), "/sys/fs/cgroup"),
                  kills_at(kept_->root(), "/sys/fs/cgroup/memory"));
}

PreparedRun::Attempt EngineRun::run(JobWatch& watch, const std::function<void()>& started) {
  Keeper& keeper = kept_->keeper();
  if (std::exchange(again_, true) && !keeper.reset(memory_targets(container_))) {
    return {last_end_, false, true};
  }
  const std::uint64_t kills = memory_kills_so_far();
  const KeptProcess process = job();
  keeper::Failed problem;
  const std::optional<Keeper::Started> begun = keeper.start(process, problem);
  if (!begun) {
    if (problem.step == keeper::Failed::Step::folder) throw cannot_enter(process.workdir, problem);
    if (const auto why = refused_by_kernel(problem, bundle_.argv.front())) {
      return {{{why->status, false}}};
    }
    throw failure("run-failed", "the command could not be started in the container")
        .because(errno_text(problem.error));
  }
  Attempt attempt{{}, true};
  started();
  {
    std::optional<TerminalRelay> relay;
    if (begun->master) relay.emplace(begun->master);
    EngineExec server{keeper, kept_->root(), bundle_, process};
    EngineJob job{*kept_, *run_.engine};
    watch.while_running(job, [&](const ExecRequest& request, std::vector<Fd> files, Fd back) {
      server.start(request, std::move(files), std::move(back));
    });
    if (!job.has_engine()) throw engine_gone(*run_.engine);
    if (watch.gave_up()) {
      kept_->abandon();
      return {{Exit{128 + SIGKILL, true}}, true, true};
    }
    const std::optional<Keeper::End> end = keeper.ended();
    attempt.end.exit = end ? end->exit : Exit{128 + SIGKILL, true};
    if (end) usage_ = usage_of(end->use);
    attempt.end.out_of_memory = end && memory_kills_so_far() > kills;
    if (!end) kept_->abandon();  // whatever still speaks there
    // What the command left running goes with it, and lets go of terminal and streams.
    attempt.last = !end || !keeper.reset({});
  }
  last_end_ = attempt.end;
  return attempt;
}

}  // namespace mlenv
