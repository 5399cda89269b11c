#pragma once
// Finds the facts out. Nothing here changes the host, needs root, or throws for what it does not
// find: that is unknown, with the reason.
#include "runner/facts/sources.hpp"

namespace mlenv {

/// All of them; programs are asked at the same time, each with a deadline.
Facts probe_facts(const FactSources& from);

// The groups.
SystemFacts probe_system(const FactSources& from);
CpuFacts probe_cpu(const FactSources& from);
MemoryFacts probe_memory(const FactSources& from);
StorageFacts probe_storage(const FactSources& from);
LimitFacts probe_limits(const FactSources& from);
IsolationFacts probe_isolation(const FactSources& from);
Fact<std::vector<Engine>> probe_engines(const FactSources& from);
/// What one answers to the word that makes it tell: `1.8.1`.
Text engine_version(const FactSources& from, const std::string& program, const std::string& asks);
Fact<std::vector<CdiFile>> probe_cdi(const FactSources& from);
Fact<std::vector<NetworkInterface>> probe_interfaces(const FactSources& from);
Fact<std::vector<RdmaPort>> probe_rdma(const FactSources& from);
/// Asks `getent`, which a slow name server holds up.
void probe_host_name(const FactSources& from, NetworkFacts& into);
TimeFacts probe_time(const FactSources& from);

/// `nvidia`, `gpus` and `gpu_paths`: NVML and the CUDA driver in processes of their own, since a
/// sick driver hangs whoever asks it; then nvidia-smi; then /proc.
void probe_nvidia(const FactSources& from, Facts& into);
/// Version of the loaded kernel module, `none` where there is none.
Text probe_kernel_driver(const FactSources& from);
/// The first word that is a driver's version: `580.65.06`, `470.57`.
std::optional<std::string> driver_version(std::string_view text);

/// The process that asks NVIDIA's libraries: main() calls this first and returns its value when it
/// is engaged (`mlenv __facts nvml | cuda`). nullopt: this is an ordinary start.
std::optional<int> facts_main(int argc, char** argv);

// For the groups.

/// A line of /proc/self/mountinfo.
struct MountLine {
  std::string root;  ///< what of the file system is mounted: `/`, a folder in it
  std::string point;
  std::string type;
  std::string options;        ///< of the mount
  std::string super_options;  ///< of the file system
};
Fact<std::vector<MountLine>> mounts(const FactSources& from);
/// `v1`, `v2`, `hybrid`, `none`.
Text cgroup_version(const Fact<std::vector<MountLine>>& mounted);
/// What places a process in its groups, read once for many questions.
struct CgroupView {
  Text groups;  ///< /proc/PID/cgroup
  Fact<std::vector<MountLine>> mounted;
};
/// `process`: its number.
CgroupView cgroup_view(const FactSources& from, std::string_view process = "self");
struct CgroupFolders {
  bool unified = false;           ///< of v2
  std::vector<fs::path> folders;  ///< the process's, and those above it that are mounted
};
/// In the hierarchy that has the controller (none is asked for: v2's), innermost first; no folders
/// where the kernel has none such. Unknown where they cannot be seen.
Fact<CgroupFolders> cgroup_folders(const FactSources& from, const CgroupView& view,
                                   std::string_view controller);
Fact<CgroupFolders> cgroup_folders(const FactSources& from, std::string_view controller,
                                   std::string_view process = "self");
/// What one cgroup allows; unlimited where the folder has no such file, as a hierarchy's first.
using ReadLimit = std::function<Fact<Limit>(const fs::path& folder, bool unified)>;
/// The least of all of them.
Fact<Limit> least_limit(const FactSources& from, std::string_view controller,
                        const ReadLimit& read);

}  // namespace mlenv
