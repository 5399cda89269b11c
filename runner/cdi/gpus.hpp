#pragma once
// Which GPUs a run gets: the words of `--gpus`, and where a CDI specification of NVIDIA's GPUs
// comes from on a host that has none.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/cdi/registry.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {

inline constexpr std::string_view kNvidiaGpu = "nvidia.com/gpu";

struct GpuChoice {
  enum class Kind { automatic, none, all, count, named };
  Kind kind = Kind::automatic;
  std::size_t count = 0;           ///< of `count`, 1 or more
  std::vector<CdiName> devices{};  ///< of `named`
};

/// `all`, `none`, a number (so many, as Docker has it; 0 is none), `device=0,2` (by index or UUID),
/// UUIDs (`GPU-…`, `MIG-…`) with commas between, or CDI's own names (`nvidia.com/gpu=0`). Empty:
/// automatic. Throws `usage`.
GpuChoice parse_gpus(std::string_view word);

/// The devices that a choice means. Throws `no-device` where there are fewer than that.
std::vector<CdiName> chosen_gpus(const GpuChoice& choice, const CdiRegistry& registry);

/// Each of the machine's NVIDIA GPUs by a name of its own: by index, else by UUID. None where the
/// specification names but all of them together. Throws what `CdiRegistry::names` does.
std::vector<CdiName> separate_gpus(const CdiRegistry& registry);

/// Whether the host has NVIDIA GPUs that a driver runs: a question of two files, asked at every
/// start.
bool has_nvidia_driver(const fs::path& root = "/");

/// What NVML tells of GPUs that are split. It need not see all that the driver has, so that its
/// indexes are its own.
struct SplitGpus {
  Fact<std::vector<Gpu>> gpus;
  Fact<std::vector<MigDevice>> parts;  ///< `gpu`: the index of one of `gpus`
};
/// Asked for that, which takes a second.
using AskMig = std::function<SplitGpus()>;

/// A specification made from what the driver shows: its device files (/proc/driver/nvidia), its
/// libraries by the linker's cache, nvidia-smi and its kin, the sockets of its daemons; on WSL what
/// Windows gives. Devices are named by index (in the order of bus addresses, as nvidia-smi counts),
/// by UUID, and `all`. Of a GPU that is split into instances each part is a device, `GPU:PART` and
/// `MIG-…`, as NVIDIA's container toolkit names them; where nobody tells them apart, the GPU is one
/// device with all of its parts. The libraries are shown in a folder of their own that
/// `library_folders` names, so that nothing of the image changes. nullopt where no driver runs;
/// throws `no-device` where its libraries are not installed.
std::optional<CdiSpec> nvidia_spec(const fs::path& root = "/", const AskMig& ask = {});

/// What `nvidia-ctk cdi generate` says, remembered in `cache` for as long as this boot, the driver
/// and the devices are the same. nullopt: the program failed (the debug log says how).
std::optional<CdiSpec> toolkit_spec(const fs::path& program, const fs::path& cache);

}  // namespace mlenv
