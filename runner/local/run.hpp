#pragma once
// Runs an image here: overlayfs over the unpacked layers with a throwaway writable layer, the
// container by runc (crun where it works), as root or rootless. Defaults: docs/run.md.
//
// run_local starts a process of its own for it (`mlenv __run` when we have threads, which may not
// unshare) and passes signals on; that process (stage.hpp) makes the namespaces and the overlay and
// starts the OCI runtime. It ends the container when it loses us, so that not even `kill -9` leaves
// one behind.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/overlay.hpp"
#include "base/process.hpp"
#include "images/oci.hpp"
#include "runner/cdi/spec.hpp"
#include "runner/engine/engine.hpp"
#include "runner/local/life.hpp"
#include "runner/local/options.hpp"
#include "runner/vm/spec.hpp"

namespace mlenv {

struct Mount {
  fs::path source;     ///< on the host, absolute
  std::string target;  ///< in the container, absolute
  bool read_only = false;
  std::vector<std::string> options{};  ///< of mount(8), in place of the usual ones
  std::string storage{};               ///< the name by which `source` was said; empty: by its path
  /// `SRC:DST[:ro]`; a relative SRC is relative to the current folder. Throws `bad-mount` (usage)
  /// when it is malformed, SRC does not exist, or DST is `/`, `/dev`, `/sys` or in `/proc`.
  static Mount parse(std::string_view text);
  /// The same of its parts; `text` is what was written.
  static Mount of(std::string_view text, std::string_view source, std::string_view target,
                  bool read_only);
};

/// What a run with throwaway mounts does not find, though it is in the mount's source.
struct FreshPath {
  std::size_t mount = 0;  ///< index in job_mounts(run)
  std::string within;     ///< below its source; empty: all of it
  bool existed = false;   ///< a folder stays, emptied
};

/// A layer that outlives the run (record/kept_layers.hpp).
struct LayerUse {
  fs::path folder;
  bool to_write = false;  ///< else what the run writes is thrown away, as without a layer
};

struct LocalRun {
  ImageConfig config;            ///< of the image
  std::vector<fs::path> trees;   ///< unpacked layers, the bottom one first
  std::vector<Mount> mounts;     ///< besides the defaults
  CdiEdits devices;              ///< GPUs and the like; host paths in it are there
  JobOptions options;            ///< limits, network, user and the like
  std::vector<std::string> env;  ///< `K=V`, over the image's; `K` alone takes the caller's value
  /// A folder of the image that comes first in LD_LIBRARY_PATH; empty: none.
  std::string first_libraries{};
  std::string workdir;  ///< empty: the image's
  /// Run as it is, without the image's entrypoint; empty: the image's entrypoint and command.
  std::vector<std::string> argv;
  /// Mounted at the image's workdir (`/workspace` where it has none); nullopt: nothing.
  std::optional<fs::path> project;
  /// Of the sources, the project among them: those that have no link in them. One that is there
  /// when they are mounted was put there since, and is refused (held_mounts.hpp).
  std::vector<fs::path> settled{};
  fs::path scratch;       ///< folder on a file system that overlayfs accepts as upper
  bool terminal = false;  ///< give it a terminal (ours); standard input must be one
  std::string runtime;    ///< `runc`, `crun` or a path; empty: the first that is there
  std::optional<ContainerEngine>
      engine;                  ///< docker or podman runs it in our place, and has the image
  std::optional<VmSpec> vm{};  ///< a virtual machine of its own
  OverlayMethod overlay = OverlayMethod::automatic;
  std::optional<LayerUse> layer{};  ///< over the image's
  RunLife life{};
  /// Descriptors of this process; -1: none.
  struct Fds {
    int control = -1;  ///< a listening socket (control.hpp)
    int out = -1;      ///< the command's output, in place of ours
    int err = -1;
    int layer = -1;  ///< what holds `layer`: as long as the container lives
  } fds{};
  /// What is written to mounts, the project among them, goes to throwaway_folder() and no further.
  bool throwaway_mounts = false;
  std::vector<FreshPath> fresh{};  ///< of throwaway mounts
};

/// What is heard of a run while it goes on.
struct RunEvents {
  std::function<void()> started{};  ///< the command runs; again with each attempt
  std::function<void(const AttemptEnd&)> attempt_ended{};
  /// Read when there is something (poll(2)), and once more when the run has ended; false: no more
  /// of it.
  struct Reader {
    int fd = -1;
    std::function<bool()> read;
  };
  std::vector<Reader> readers{};
  std::function<void()> forked{};  ///< the stage has its copies of `LocalRun::fds`
};

/// Where what a run wrote to that one of job_mounts(run) is, by the paths that it has there.
fs::path throwaway_folder(const fs::path& scratch, std::size_t mount);

/// Runs to the end with our stdin, stdout, stderr and terminal; signals sent to us reach it. The
/// command's status: 126 found but not executable, 127 not found (each with one line on stderr, as
/// a shell has it), 128+n after a signal. Everything the job started is gone afterwards; files stay
/// in `scratch` alone, which is the caller's to remove. Throws for what is not the job's doing
/// (`no-runtime`, `no-overlay`, `no-namespace`, `no-command`, `stale-cdi`, `no-limit`,
/// `no-network`, `port-taken`, `run-failed`), which the CLI turns into 125.
RunOutcome run_local(const LocalRun& run, RunEvents events = {});

/// The second half of its re-exec: main() calls it before any thread exists and returns its value
/// when it is engaged. nullopt: this is an ordinary start.
std::optional<int> run_main(int argc, char** argv);

}  // namespace mlenv
