#include "runner/check/rules.hpp"

#include <algorithm>
#include <array>

namespace mlenv {
namespace {

struct RuleRow {
  Rule rule;
  void (*look)(Case&);  ///< null: it shows between images alone
};

constexpr std::string_view kGuide = "NVIDIA, CUDA Compatibility guide";
constexpr std::string_view kDriverApi = "NVIDIA, CUDA Driver API, CUresult";
constexpr std::string_view kToolkit = "NVIDIA container toolkit";

constexpr std::array kRuleRows = std::to_array<RuleRow>({
    {{"driver-too-old", Severity::blocks, "the NVIDIA driver is too old", kGuide, true},
     driver_too_old},
    {{"ptx-too-new", Severity::blocks, "the driver cannot compile the code for its GPU", kGuide},
     ptx_too_new},
    {{"forward-compatibility-refused", Severity::blocks,
      "the image's libcuda may not be used with this GPU or driver", kGuide},
     forward_compatibility_refused},
    {{"driver-mismatch", Severity::blocks, "the parts of the NVIDIA driver differ", kDriverApi},
     driver_mismatch},
    {{"driver-not-loaded", Severity::blocks, "no NVIDIA driver is loaded", kDriverApi},
     driver_not_loaded},
    {{"device-nodes-missing", Severity::blocks, "the GPUs' device files are missing", kToolkit},
     device_nodes_missing},
    {{"fabric-manager-missing", Severity::blocks, "Fabric Manager does not run",
      "NVIDIA, Fabric Manager user guide"},
     fabric_manager_missing},
    {{"cuda-init-fails", Severity::blocks, "CUDA cannot be initialised", kDriverApi},
     cuda_init_fails},
    {{"requirement-unmet", Severity::blocks, "the image's NVIDIA_REQUIRE_… is not met", kToolkit,
      true},
     requirement_unmet},
    {{"driver-below-recipe", Severity::blocks, "the driver is older than the image asks for",
      "the recipe's `driver`, docs/recipe.md", true},
     driver_below_recipe},
    {{"no-device-code", Severity::blocks, "the image holds no code for the GPU",
      "NVIDIA, CUDA C++ Programming Guide, Application Compatibility", true},
     no_device_code},
    {{"xla-too-old", Severity::blocks, "the framework's compiler does not know the GPU",
      "TensorFlow's and JAX's trackers", true},
     xla_too_old},
    {{"recipe-gpus", Severity::blocks, "the image is made for other GPUs",
      "the recipe's `gpus`, docs/recipe.md", true},
     recipe_gpus},
    {{"no-gpu", Severity::slows, "there is no GPU", "the image's and the host's own facts", true},
     no_gpu},
    {{"architecture-differs", Severity::blocks, "the image is for another architecture",
      "OCI image specification, config", true},
     architecture_differs},
    {{"cpu-instructions", Severity::blocks, "the processor lacks instructions",
      "x86-64 psABI, micro-architecture levels", true},
     cpu_instructions},
    {{"kernel-too-old", Severity::blocks, "the kernel is too old for the C library",
      "glibc, .note.ABI-tag", true},
     kernel_too_old},
    {{"namespaces-forbidden", Severity::blocks, "namespaces are forbidden", "docs/sandbox.md"},
     namespaces_forbidden},
    {{"library-missing", Severity::risks, "libraries are missing", "ld.so(8)"}, library_missing},
    {{"import-fails", Severity::risks, "Python packages cannot be imported",
      "the image's own Python, `mlenv build --imports`"},
     import_fails},
    {{"symbol-version-missing", Severity::risks, "a library is too old for those that use it",
      "ld.so(8); Linux Standard Base, Symbol Versioning"},
     symbol_version_missing},
    {{"two-cuda-runtimes", Severity::risks, "there are two CUDA runtimes", "ld.so(8)"},
     two_cuda_runtimes},
    {{"cdi-missing", Severity::risks, "containers get no GPU", "Container Device Interface"},
     cdi_missing},
    {{"gpus-after-daemon-reload", Severity::risks, "containers may lose their GPUs", kToolkit},
     gpus_after_daemon_reload},
    {{"shared-memory-small", Severity::risks, "shared memory is small",
      "PyTorch, torch.utils.data; docker run --shm-size"},
     shared_memory_small},
    {{"memlock-low", Severity::risks, "little memory may be locked",
      "NCCL user guide, troubleshooting"},
     memlock_low},
    {{"open-files-low", Severity::risks, "few files may be open", "PyTorch, torch.multiprocessing"},
     open_files_low},
    {{"user-without-name", Severity::risks, "the user has no name in the image", "getpwuid(3)"},
     user_without_name},
    {{"disk-space", Severity::risks, "the disk is too full", "the image's own size"}, disk_space},
    {{"host-name-loopback", Severity::risks, "the host's name leads to itself",
      "getaddrinfo(3); PyTorch, torch.distributed"},
     host_name_loopback},
    {{"interface-choice", Severity::risks, "another network interface may be chosen",
      "NCCL user guide, NCCL_SOCKET_IFNAME"},
     interface_choice},
    {{"nccl-differs", Severity::risks, "the images have different versions of NCCL",
      "NCCL user guide, troubleshooting"},
     nullptr},
    {{"cpu-only-framework", Severity::slows, "the framework cannot use the GPU",
      "the image's and the host's own facts"},
     cpu_only_framework},
    {{"ptx-only", Severity::slows, "code for the GPU is compiled at each start",
      "NVIDIA, CUDA C++ Programming Guide, Application Compatibility"},
     ptx_only},
    {{"gpudirect-missing", Severity::slows, "GPUs and network do not reach each other's memory",
      "NVIDIA, GPUDirect RDMA"},
     gpudirect_missing},
    {{"minor-version-compatibility", Severity::note, "it runs by minor-version compatibility",
      kGuide},
     minor_version_compatibility},
    {{"forward-compatibility", Severity::note, "it runs by forward compatibility", kGuide},
     forward_compatibility},
    {{"drivers-differ", Severity::note, "the hosts have different drivers", kGuide}, nullptr},
    {{"mig", Severity::note, "a GPU is split", "NVIDIA, Multi-Instance GPU user guide"}, mig},
    {{"wsl", Severity::note, "this is Linux on Windows", "NVIDIA, CUDA on WSL user guide"}, wsl},
    {{"wasted-bytes", Severity::note, "the image holds bytes that nobody sees",
      "OCI image specification, layers"},
     wasted_bytes},
    {{"clock-unsynchronised", Severity::note, "nobody sets the clock", "adjtimex(2)"},
     clock_unsynchronised},
    {{"persistence-off", Severity::note, "the driver unloads between programs",
      "NVIDIA, Driver Persistence"},
     persistence_off},
});

constexpr auto kCheckRules = [] {
  std::array<Rule, kRuleRows.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all.at(i) = kRuleRows.at(i).rule;
  return all;
}();

}  // namespace

std::string_view name_of(Severity severity) {
  constexpr std::array<std::string_view, 4> kNames = {"blocks", "risks", "slows", "note"};
  return kNames.at(static_cast<std::size_t>(severity));
}

bool Verdict::blocks() const { return worst() == Severity::blocks; }

std::optional<Severity> Verdict::worst() const {
  if (findings.empty()) return std::nullopt;
  return findings.front().severity;
}

bool Verdict::is_open() const {
  return std::any_of(unjudged.begin(), unjudged.end(), [](const Unjudged& one) {
    const Rule* rule = find_rule(one.rule);
    return rule != nullptr && rule->decides;
  });
}

bool Verdict::leaves_open(Severity at_least) const {
  return std::any_of(unjudged.begin(), unjudged.end(), [&](const Unjudged& one) {
    const Rule* rule = find_rule(one.rule);
    return rule != nullptr && (rule->decides || rule->severity <= at_least);
  });
}

std::string_view Verdict::word() const {
  if (blocks()) return "blocks";
  if (is_open()) return "unknown";
  if (worst() == Severity::risks) return "risks";
  return worst() == Severity::slows ? "slows" : "runs";
}

std::span<const Rule> rules() { return kCheckRules; }

const Rule* find_rule(std::string_view id) {
  const auto* found = std::find_if(kCheckRules.begin(), kCheckRules.end(),
                                   [&](const Rule& one) { return one.id == id; });
  return found == kCheckRules.end() ? nullptr : found;
}

Verdict judge(const ImageFacts& image, const Facts& host, const Use& use) {
  Case here(image, host, use);
  for (const RuleRow& row : kRuleRows) {
    if (row.look != nullptr) row.look(here);
  }
  return std::move(here).verdict();
}

}  // namespace mlenv
