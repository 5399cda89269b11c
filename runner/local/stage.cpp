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
#include "runner/local/home.hpp"
#include "runner/local/job.hpp"
#include "runner/local/job_checks.hpp"
#include "runner/local/limits.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/network.hpp"
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
  std::optional<NetworkProgram> network;  ///< of a private one
};

/// Who it runs as. With a single id there is but one user, the caller, and here they are root.
ContainerUser job_user(const LocalRun& run, const ImageRoot& image, bool single_id) {
  const std::string passwd = image.read("/etc/passwd").value_or("");
  const std::string group = image.read("/etc/group").value_or("");
  if (!single_id) {
    ContainerUser user = resolve_user(run.options.user.value_or(run.config.user), passwd, group);
    add_groups(user, run.options.groups, group);
    return user;
  }
  const ContainerUser wanted = resolve_user(run.options.user.value_or(""), passwd, group);
  if (wanted.uid == 0 && wanted.gid == 0 && run.options.groups.empty()) {
    return resolve_user("", passwd, group);
  }
  const std::string option = run.options.groups.empty() ? "--user " + *run.options.user
                                                        : "--group-add " + run.options.groups[0];
  throw failure("no-user-map",
                "`{}` needs more than the one user id that a container of an "
                "ordinary user has",
                option)
      .because(
          "that one is yours: in the container it is shown as root, and files that it makes "
          "are yours")
      .hint("leave it out, or run as root");
}

void set_host_name(const ImageRoot& image, const JobOptions& options, Bundle& bundle) {
  if (!options.hostname) return;
  bundle.hostname = *options.hostname;
  // So that a program that looks its own host up finds it.
  image.write("/etc/hosts",
              image.read("/etc/hosts").value_or("") + "127.0.1.1 " + bundle.hostname + "\n");
}

/// What of the options concerns files: folders in memory, and with a read-only root a home that can
/// be written, which is the throwaway layer's own.
void add_folders(const JobOptions& options, const Stage& stage, Bundle& bundle) {
  for (const MemoryFolder& one : options.tmpfs) {
    CdiMount folder;
    folder.path = one.target;
    folder.host_path = folder.type = "tmpfs";
    folder.options = one.options;
    bundle.file_systems.push_back(std::move(folder));
  }
  bundle.read_only = options.read_only;
  const std::string& home = bundle.user.home;
  if (options.read_only)
    bundle.mounts.push_back({stage.root / fs::path(home).relative_path(), home});
}

Bundle make_bundle(const LocalRun& run, const ImageRoot& image, const Stage& stage) {
  const bool single_id = stage.identity == Identity::single_id;
  Bundle bundle;
  bundle.id = random_id();
  bundle.hostname = host_name();
  bundle.architecture = run.config.architecture;
  bundle.identity = stage.identity;
  bundle.root = stage.root;
  bundle.user = job_user(run, image, single_id);
  give_home(bundle.user, image);
  const Environment caller = caller_environment();
  const fs::path machine_folder = stage.private_folder / "machine";
  make_folders(machine_folder);
  const std::vector<std::string> machine =
      bring_machine(image, {"/", caller, machine_folder, single_id});
  set_host_name(image, run.options, bundle);
  if (stage.network) {
    image.write("/etc/resolv.conf", private_resolver(image.read("/etc/resolv.conf").value_or(""),
                                                     stage.network->is_pasta));
  }
  bundle.argv = job_argv(run);
  bundle.env = job_environment(run, machine, caller, bundle.user.home);
  bundle.workdir = job_workdir(run);
  add_folders(run.options, stage, bundle);
  add_devices(run.devices, bundle);  // first: the person's own mounts take their place
  const std::vector<Mount> mounts = job_mounts(run);
  bundle.mounts.insert(bundle.mounts.end(), mounts.begin(), mounts.end());
  bundle.mounts.insert(bundle.mounts.begin(), {machine_folder, std::string(kMachineTarget), true});
  bundle.terminal = run.terminal;
  bundle.ulimits = run.options.ulimits;
  bundle.shm_bytes = run.options.shm_bytes;
  return bundle;
}

/// In words, where the kernel says more than the status does.
void tell_of_memory(const JobEnd& end, const JobLimits& limits) {
  if (!end.out_of_memory) return;
  complain("the kernel killed a process of this run for want of memory" +
           (limits.memory_bytes
                ? fmt::format("; `--memory` allows {} MiB", *limits.memory_bytes >> 20U)
                : std::string()));
}

JobEnd run_container(const LocalRun& run, Watch watch) {
  const Runtime runtime = find_runtime(run.runtime);
  Stage stage;
  if (run.options.network == "private") stage.network = find_network_program();
  check_ports(run.options.ports);
  check_ulimits(run.options.ulimits);
  // Before the namespaces, and outliving what is in it.
  std::optional<LimitGroup> limits;
  if (run.options.limits != JobLimits{}) watch.limits = &limits.emplace(run.options.limits);
  stage.identity = enter_namespaces();
  stage.root =
      mount_overlay({run.trees, run.scratch, stage.identity != Identity::root, run.overlay});
  stage.private_folder = mount_private_folder(run.scratch);
  Bundle bundle;
  {
    const ImageRoot image{stage.root};
    bundle = make_bundle(run, image, stage);
    check_mounts(bundle, image);
    check_workdir(bundle, image);
    if (const std::optional<CannotRun> refusal = cannot_run(bundle, image)) {
      complain(refusal->why);
      return {{refusal->status, false}};
    }
  }
  std::optional<PrivateNetwork> network;
  if (run.options.network != "host") {
    const fs::path name_space = stage.private_folder / "network";
    make_network_namespace(name_space);
    bundle.network_namespace = name_space;
    if (stage.network) {
      network.emplace(*stage.network, name_space, stage.private_folder, run.options.ports,
                      stage.identity);
    }
  }
  PidNamespace processes;
  bundle.pid_namespace = processes.path();
  write_file(stage.private_folder / "config.json", render_bundle(bundle), false);
  if (::chdir("/") != 0) throw os_error(errno, "cannot enter `/`");
  const Container container{bundle.id, stage.private_folder, stage.identity, run.terminal};
  const JobEnd end = supervise(runtime, container, processes, watch);
  tell_of_memory(end, run.options.limits);
  return end;
}

}  // namespace

int run_stage(const LocalRun& run, int socket) noexcept {
  const auto answer = [socket](std::string_view bytes) {
    // Nobody reads it when mlenv is gone.
    (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  };
  try {
    const Fd signals = hold_signals();
    const JobEnd end = run_container(run, {signals.get(), socket});
    answer(render_outcome(end));
    return end.exit.code;
  } catch (const Error& error) {
    answer(render_outcome(error));
  } catch (const std::exception& error) {
    answer(render_outcome(Error(Kind::internal, "internal", error.what())));
  }
  return 125;
}

std::optional<int> run_main(int argc, char** argv) {
  if (argc != 2 || argv[1] != kStageArgument) return std::nullopt;
  ::fcntl(kStageSocket, F_SETFD, FD_CLOEXEC);
  FdSource source{kStageSocket};
  return run_stage(parse_request(read_all(source, std::uint64_t{64} << 20)), kStageSocket);
}

}  // namespace mlenv
