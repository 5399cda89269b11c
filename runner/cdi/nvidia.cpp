#include <algorithm>

#include <fmt/format.h>

#include "runner/cdi/gpus.hpp"
#include "runner/cdi/nvidia_files.hpp"

namespace mlenv {
namespace {

using FolderNames = std::vector<std::string>;

constexpr std::string_view kGpus = "/proc/driver/nvidia/gpus";
constexpr std::string_view kWsl = "/usr/lib/wsl";

FactSources sources_below(const fs::path& root) {
  FactSources from;
  from.root = root;
  return from;
}

void add_node(const FactSources& from, const std::string& path, CdiEdits& edits) {
  if (!present(from, path)) return;
  CdiNode node;
  node.path = path;
  edits.nodes.push_back(std::move(node));
}

fs::path instances_of(const std::string& minor) {
  return "/proc/driver/nvidia/capabilities/gpu" + minor + "/mig";
}

/// The device file that allows to use an instance of a split GPU, or its part.
void add_capability(const FactSources& from, const fs::path& folder, CdiEdits& edits) {
  const auto minor =
      line_value(file_text(from, folder / "access").value.value_or(""), "DeviceFileMinor", ':');
  if (minor) add_node(from, "/dev/nvidia-caps/nvidia-cap" + *minor, edits);
}

bool is_split(const FactSources& from, const std::string& minor) {
  const FolderNames names = names_in(from, instances_of(minor)).value.value_or(FolderNames{});
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with("gi"); });
}

void add_all_instances(const FactSources& from, const std::string& minor, CdiEdits& edits) {
  const fs::path folder = instances_of(minor);
  for (const std::string& instance : names_in(from, folder).value.value_or(FolderNames{})) {
    if (!instance.starts_with("gi")) continue;
    add_capability(from, folder / instance, edits);
    for (const std::string& part :
         names_in(from, folder / instance).value.value_or(FolderNames{})) {
      if (part.starts_with("ci")) add_capability(from, folder / instance / part, edits);
    }
  }
}

/// Which of NVML's it is, by what no other has; nullopt where it does not say.
std::optional<std::uint64_t> nvml_index(const SplitGpus& told, const Gpu& gpu) {
  for (const Gpu& one : told.gpus.value.value_or(std::vector<Gpu>{})) {
    if (one.uuid && gpu.uuid && *one.uuid == *gpu.uuid) return one.index;
    if (one.pci_address && gpu.pci_address && *one.pci_address == *gpu.pci_address) {
      return one.index;
    }
  }
  return std::nullopt;
}

/// The parts of a split GPU, by index and by UUID; none where one of them is not known whole.
std::vector<CdiDevice> mig_parts(const FactSources& from, const Gpu& gpu, const std::string& minor,
                                 const SplitGpus& told) {
  std::vector<CdiDevice> found;
  const std::optional<std::uint64_t> index = nvml_index(told, gpu);
  if (!index) return found;
  for (const MigDevice& part : told.parts.value.value_or(std::vector<MigDevice>{})) {
    if (part.gpu != *index) continue;
    if (!part.uuid || !part.gpu_instance || !part.compute_instance) return {};
    CdiDevice device{fmt::format("{}:{}", gpu.index, part.index), {}};
    const fs::path instance = instances_of(minor) / fmt::format("gi{}", *part.gpu_instance);
    add_node(from, "/dev/nvidia" + minor, device.edits);
    add_capability(from, instance, device.edits);
    add_capability(from, instance / fmt::format("ci{}", *part.compute_instance), device.edits);
    constexpr std::size_t kNodes = 3;
    if (device.edits.nodes.size() != kNodes) return {};
    found.push_back(device);
    device.name = *part.uuid;
    found.push_back(std::move(device));
  }
  return found;
}

/// What renders without a display (EGL, Vulkan) opens: by the GPU's address on the bus.
void add_render_nodes(const FactSources& from, const std::string& address, CdiEdits& edits) {
  const fs::path folder = fs::path("/sys/bus/pci/devices") / address / "drm";
  for (const std::string& name : names_in(from, folder).value.value_or(FolderNames{})) {
    add_node(from, "/dev/dri/" + name, edits);
  }
}

/// A GPU by index and by UUID, with all that it is split into.
std::vector<CdiDevice> whole(const FactSources& from, const Gpu& gpu, const std::string& minor) {
  CdiDevice device{std::to_string(gpu.index), {}};
  add_node(from, "/dev/nvidia" + minor, device.edits);
  add_all_instances(from, minor, device.edits);
  if (device.edits.nodes.empty()) return {};
  add_render_nodes(from, *gpu.pci_address, device.edits);
  std::vector<CdiDevice> found{device};
  if (!gpu.uuid || !gpu.uuid->starts_with("GPU-")) return found;
  device.name = *gpu.uuid;
  found.push_back(std::move(device));
  return found;
}

std::vector<CdiDevice> gpu_devices(const FactSources& from, const AskMig& ask) {
  std::vector<CdiDevice> found;
  std::optional<SplitGpus> told;
  std::uint64_t index = 0;
  for (const std::string& address : names_in(from, kGpus).value.value_or(FolderNames{})) {
    const Text text = file_text(from, fs::path(kGpus) / address / "information");
    const Text minor = named_value(text, "Device Minor", ':');
    Gpu gpu;
    gpu.index = index++;
    gpu.uuid = named_value(text, "GPU UUID", ':');
    gpu.pci_address = known(address, std::string(kGpus));
    if (!minor) continue;
    std::vector<CdiDevice> devices;
    if (ask && is_split(from, *minor)) {
      if (!told) told = ask();
      devices = mig_parts(from, gpu, *minor, *told);
    }
    if (devices.empty()) devices = whole(from, gpu, *minor);
    std::move(devices.begin(), devices.end(), std::back_inserter(found));
  }
  return found;
}

CdiDevice all_of(const std::vector<CdiDevice>& devices) {
  CdiDevice all{"all", {}};
  for (const CdiDevice& one : devices) {
    for (const CdiNode& node : one.edits.nodes) {
      if (std::find(all.edits.nodes.begin(), all.edits.nodes.end(), node) == all.edits.nodes.end())
        all.edits.nodes.push_back(node);
    }
  }
  return all;
}

CdiSpec wsl_spec(const FactSources& from) {
  CdiSpec spec;
  add_node(from, "/dev/dxg", spec.edits);
  add_mount(from, std::string(kWsl), spec.edits);
  spec.edits.library_folders.push_back(fmt::format("{}/lib", kWsl));
  spec.devices.push_back({"all", {}});
  return spec;
}

CdiSpec driver_spec(const FactSources& from, const AskMig& ask) {
  CdiSpec spec;
  for (const char* node :
       {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}) {
    add_node(from, node, spec.edits);
  }
  add_driver_files(from, spec.edits);
  spec.devices = gpu_devices(from, ask);
  if (!spec.devices.empty()) spec.devices.push_back(all_of(spec.devices));
  return spec;
}

}  // namespace

std::optional<CdiSpec> nvidia_spec(const fs::path& root, const AskMig& ask) {
  if (!has_nvidia_driver(root)) return std::nullopt;
  const FactSources from = sources_below(root);
  CdiSpec spec = present(from, "/dev/dxg") ? wsl_spec(from) : driver_spec(from, ask);
  spec.shown = "the NVIDIA driver's files";
  spec.kind = kNvidiaGpu;
  // What adds GPUs by itself, where it is set up (NVIDIA's runtime and hook), leaves them to us.
  spec.edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  return spec;
}

}  // namespace mlenv
