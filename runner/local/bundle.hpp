#pragma once
// The OCI runtime configuration of one container (runtime-spec config.md, config-linux.md).
//
// A runtime enters the command's folder before it gives its rights up, and an image or a program
// may have made that folder a link to anywhere. So the runtime is given `/`, and starts a program
// of mlenv's own (runner/engine/keeper/enter.hpp), which enters the folder with the command's
// rights.
#include <string>
#include <vector>

#include "runner/local/namespaces.hpp"
#include "runner/local/run.hpp"
#include "runner/local/user.hpp"

namespace mlenv {

struct Bundle {
  std::string id;
  std::string group;  ///< its control group; relative: below ours, or what is shown as the first
  std::string hostname;
  std::string architecture = "amd64";
  Identity identity = Identity::single_id;
  fs::path root;  ///< the mounted overlay
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string workdir;
  bool make_workdir = true;  ///< by the command's own rights, where it is absent
  ContainerUser user;
  bool terminal = false;
  unsigned rows = 0;  ///< of the terminal; 0: not known
  unsigned columns = 0;
  std::vector<Mount>
      mounts;  ///< after the default ones, of which they replace those at their target
  std::vector<CdiNode> nodes;  ///< device files to make, wholly described
  std::vector<CdiHook> hooks;
  std::vector<CdiMount> file_systems;  ///< mounts that show no path of the host
  std::string pid_namespace;           ///< path of the one to join
  std::string network_namespace;       ///< the same; empty: the host's
  std::string apparmor_profile;        ///< one that is loaded; empty: the caller's own
  std::vector<Ulimit> ulimits;
  std::optional<std::uint64_t> shm_bytes;  ///< of /dev/shm; nothing: half of the memory
  bool read_only = false;                  ///< the root; mounts are as they say
};

/// The program that enters the folder, and the filter of system calls that it installs before that:
/// below kMachineTarget. Nobody may read the program, so that nobody may trace it (enter.hpp).
inline constexpr const char* kFirstProgram = "keeper";
inline constexpr const char* kCallFilter = "filter";

/// config.json. Throws `bad-text` when a word of it is not UTF-8, which JSON cannot carry.
std::string render_bundle(const Bundle& bundle);
/// Its `process` alone, for one more in the same container. Throws as `render_bundle`.
std::string render_process(const Bundle& bundle);

/// The targets of the default mounts (`/proc`, `/tmp`, …), where nothing of the image can be seen.
std::vector<std::string> default_mount_targets();

}  // namespace mlenv
