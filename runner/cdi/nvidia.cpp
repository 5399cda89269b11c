#include <algorithm>

#include <fmt/format.h>

#include "runner/cdi/gpus.hpp"
#include "runner/cdi/nvidia_files.hpp"

namespace mlenv {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kGpus = "/proc/driver/nvidia/gpus";
constexpr std::string_view kWsl = "/usr/lib/wsl";

FactSources files_below(const fs::path& root) {
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

/// The device file that allows to use an instance of a split GPU, or its part.
void add_capability(const FactSources& from, const fs::path& folder, CdiEdits& edits) {
  const auto minor =
      line_value(file_text(from, folder / "access").value.value_or(""), "DeviceFileMinor", ':');
  if (minor) add_node(from, "/dev/nvidia-caps/nvidia-cap" + *minor, edits);
}

void add_instances(const FactSources& from, const std::string& minor, CdiEdits& edits) {
  const fs::path folder = "/proc/driver/nvidia/capabilities/gpu" + minor + "/mig";
  for (const std::string& instance : names_in(from, folder).value.value_or(Words{})) {
    if (!instance.starts_with("gi")) continue;
    add_capability(from, folder / instance, edits);
    for (const std::string& part : names_in(from, folder / instance).value.value_or(Words{})) {
      if (part.starts_with("ci")) add_capability(from, folder / instance / part, edits);
    }
  }
}

/// What renders without a display (EGL, Vulkan) opens: by the GPU's address on the bus.
void add_render_nodes(const FactSources& from, const std::string& address, CdiEdits& edits) {
  const fs::path folder = fs::path("/sys/bus/pci/devices") / address / "drm";
  for (const std::string& name : names_in(from, folder).value.value_or(Words{})) {
    add_node(from, "/dev/dri/" + name, edits);
  }
}

/// Each GPU by index and by UUID.
std::vector<CdiDevice> gpus(const FactSources& from) {
  std::vector<CdiDevice> found;
  std::size_t index = 0;
  for (const std::string& address : names_in(from, kGpus).value.value_or(Words{})) {
    const Text text = file_text(from, fs::path(kGpus) / address / "information");
    const Text minor = named_value(text, "Device Minor", ':');
    const Text uuid = named_value(text, "GPU UUID", ':');
    CdiDevice gpu{std::to_string(index++), {}};
    if (!minor) continue;
    add_node(from, "/dev/nvidia" + *minor, gpu.edits);
    add_instances(from, *minor, gpu.edits);
    if (gpu.edits.nodes.empty()) continue;
    add_render_nodes(from, address, gpu.edits);
    found.push_back(gpu);
    if (!uuid || !uuid->starts_with("GPU-")) continue;
    gpu.name = *uuid;
    found.push_back(std::move(gpu));
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

CdiSpec driver_spec(const FactSources& from) {
  CdiSpec spec;
  for (const char* node :
       {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}) {
    add_node(from, node, spec.edits);
  }
  add_driver_files(from, spec.edits);
  spec.devices = gpus(from);
  if (!spec.devices.empty()) spec.devices.push_back(all_of(spec.devices));
  return spec;
}

}  // namespace

std::optional<CdiSpec> nvidia_spec(const fs::path& root) {
  if (!has_nvidia_driver(root)) return std::nullopt;
  const FactSources from = files_below(root);
  CdiSpec spec = present(from, "/dev/dxg") ? wsl_spec(from) : driver_spec(from);
  spec.shown = "the NVIDIA driver's files";
  spec.kind = kNvidiaGpu;
  // What adds GPUs by itself, where it is set up (NVIDIA's runtime and hook), leaves them to us.
  spec.edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  return spec;
}

}  // namespace mlenv
