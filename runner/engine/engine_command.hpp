#pragma once
// One container as the words of `docker run` or `podman run`. The engine starts nothing but the
// keeper; the command, its streams, user, variables and folder are the keeper's affair.
#include <map>

#include "base/process.hpp"
#include "runner/cdi/spec.hpp"
#include "runner/engine/engine.hpp"
#include "runner/local/bundle.hpp"
#include "runner/local/throwaway.hpp"

namespace mlenv {

/// Names in the folder that the container sees at kMachineTarget.
inline constexpr const char* kKeeperName = "keeper";
inline constexpr const char* kKeeperSocket = "socket";

struct EngineContainer {
  std::string name;
  fs::path folder;    ///< on the host, shown at kMachineTarget: keeper, socket, certificates
  fs::path settings;  ///< on the host: `seccomp.json`, and hooks in `hooks/`
  std::string hostname;
  std::vector<Mount> mounts;  ///< outer ones first; of two at one target the later one
  std::map<std::string, ThrowawayLayer> layers;  ///< of mounts, by their targets
  std::vector<MemoryFolder> memory;              ///< besides /tmp; under mounts at their target
  std::vector<CdiNode> nodes;                    ///< of the host, as they are
  bool has_hooks = false;
  std::vector<Ulimit> ulimits;
  std::uint64_t shm_bytes = 0;
  std::optional<std::string> home;  ///< a folder that can be written though the image cannot
  JobOptions options;               ///< limits, network, ports, read_only, labels
};

/// Runs it to its end in the foreground, without streams, and removes it then. Throws `bad-mount`
/// (usage) for a path that the engine has no words for, and `no-overlay` for one of a layer.
Command run_command(const ContainerEngine& engine, const EngineContainer& container);

/// What lists the ids of what was made by `run_command`: by a label that only that can have. The
/// name may be somebody else's, whose container then stood in our way and stays.
std::vector<std::string> own_containers_words(const EngineContainer& container);
/// What removes one, whatever it does.
std::vector<std::string> remove_words(const std::string& id);

/// Where the container has memory in place of a disk: what a new attempt finds empty.
std::vector<std::string> memory_targets(const EngineContainer& container);

/// A read-only mount shows what is mounted below it read-only, too: engines have no word for that
/// (runtime-spec's `rro`), so each of those is mounted by itself. `mounted`: targets of this
/// machine's mounts.
std::vector<Mount> with_mounts_below(std::vector<Mount> mounts,
                                     const std::vector<std::string>& mounted);
/// Of /proc/self/mountinfo.
std::vector<std::string> mounted_folders(std::string_view mountinfo);

/// Limits of this process for what is not among `own`, by the names that engines know. Podman
/// leaves who may not raise limits 32768 processes at most.
std::vector<Ulimit> with_own_limits(const ContainerEngine& engine, const std::vector<Ulimit>& own,
                                    bool may_raise);

/// seccomp_profile, in a file as engines take it.
std::string seccomp_text(std::string_view architecture, bool pretend_owners);

/// A hook as podman reads it from a folder of hooks (oci-hooks(5)).
std::string render_hook(const CdiHook& hook);

}  // namespace mlenv
