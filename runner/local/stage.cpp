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
#include "runner/local/job.hpp"
#include "runner/local/job_checks.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/program.hpp"
#include "runner/local/signals.hpp"
#include "runner/local/supervise.hpp"
#include "runner/local/throwaway.hpp"

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
  std::vector<Mount> mounts = job_mounts(run);
  if (run.throwaway_mounts) {
    mounts = under_throwaway_layers(run, mounts, stage.identity != Identity::root);
  }
  bundle.mounts.insert(bundle.mounts.end(), mounts.begin(), mounts.end());
  bundle.mounts.insert(bundle.mounts.begin(), {machine_folder, std::string(kMachineTarget), true});
  bundle.terminal = run.terminal;
  return bundle;
}

Exit run_container(const LocalRun& run, const Watch& watch) {
  const Runtime runtime = find_runtime(run.runtime);
  Stage stage;
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
      return {refusal->status, false};
    }
  }
  PidNamespace processes;
  bundle.pid_namespace = processes.path();
  write_file(stage.private_folder / "config.json", render_bundle(bundle), false);
  if (::chdir("/") != 0) throw os_error(errno, "cannot enter `/`");
  const Container container{bundle.id, stage.private_folder, stage.identity, run.terminal};
  return supervise(runtime, container, processes, watch);
}

}  // namespace

int run_stage(const LocalRun& run, int socket) noexcept {
  const auto answer = [socket](std::string_view bytes) {
    // Nobody reads it when mlenv is gone.
    (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  };
  try {
    const Fd signals = hold_signals();
    const Exit exit = run_container(run, {signals.get(), socket});
    answer(render_outcome(exit));
    return exit.code;
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
