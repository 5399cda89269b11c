#include <algorithm>
#include <array>
#include <set>

#include "base/error.hpp"
#include "images/inspect/linker_cache.hpp"
#include "runner/cdi/gpus.hpp"
#include "runner/facts/sources.hpp"

namespace mlenv {
namespace {

using Words = std::vector<std::string>;

/// Where images of NVIDIA's expect a driver's libraries.
constexpr std::string_view kLibraries = "/usr/local/nvidia/lib64";
constexpr std::string_view kGpus = "/proc/driver/nvidia/gpus";
constexpr std::string_view kWsl = "/usr/lib/wsl";

const Words& read_only() {
  static const Words options{"ro", "nosuid", "nodev", "rbind", "rprivate"};
  return options;
}

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

void add_mount(const FactSources& from, const std::string& path, CdiEdits& edits) {
  if (present(from, path)) edits.mounts.push_back({path, path, "", read_only()});
}

/// The file that a path leads to, links followed beneath the root.
std::string real_path(const FactSources& from, const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(from.at(path), error);
  if (error) return {};
  if (from.live()) return real.string();
  return "/" + real.lexically_relative(fs::canonical(from.root)).string();
}

/// 64-bit libraries in the linker's cache for no processor in particular.
std::vector<CachedLibrary> host_libraries(const FactSources& from) {
  constexpr std::array<std::uint64_t, 2> kFlags = {0x303, 0xa03};  // x86-64, AArch64
  const Text cache = file_text(from, "/etc/ld.so.cache");
  std::vector<CachedLibrary> found = read_linker_cache(cache ? *cache : std::string());
  std::erase_if(found, [&](const CachedLibrary& one) {
    return one.hwcaps != 0 || std::find(kFlags.begin(), kFlags.end(), one.flags) == kFlags.end();
  });
  return found;
}

/// `.so.580.65.06` of libcuda: what all of one driver's libraries end in. Empty: there is none.
std::string driver_ending(const FactSources& from, const std::vector<CachedLibrary>& libraries) {
  constexpr std::string_view kStem = "libcuda.so.";
  for (const CachedLibrary& one : libraries) {
    if (one.name != "libcuda.so.1") continue;
    const std::string name = fs::path(real_path(from, one.path)).filename().string();
    if (name.starts_with(kStem)) return name.substr(kStem.size() - 4);
  }
  return {};
}

void add_libraries(const FactSources& from, CdiEdits& edits) {
  const std::vector<CachedLibrary> libraries = host_libraries(from);
  const std::string ending = driver_ending(from, libraries);
  if (ending.empty()) {
    throw failure("no-device", "the NVIDIA driver's libraries are not installed")
        .because("a driver runs, and the linker's cache `/etc/ld.so.cache` has no `libcuda.so.1`")
        .hint("install them (Debian: `libcuda1`), or let root run `ldconfig` where they are");
  }
  std::set<std::string> taken;
  for (const CachedLibrary& one : libraries) {
    const std::string real = real_path(from, one.path);
    if (!real.ends_with(ending) || !taken.insert(one.name).second) continue;
    edits.mounts.push_back({real, fmt::format("{}/{}", kLibraries, one.name), "", read_only()});
    // What is linked or loaded by that name (Numba, Triton).
    if (one.name == "libcuda.so.1" && taken.insert("libcuda.so").second) {
      edits.mounts.push_back({real, fmt::format("{}/libcuda.so", kLibraries), "", read_only()});
    }
  }
  edits.library_folders.emplace_back(kLibraries);
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
  add_libraries(from, spec.edits);
  for (const char* program :
       {"nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}) {
    add_mount(from, std::string("/usr/bin/") + program, spec.edits);
  }
  for (const char* socket :
       {"/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket", "/tmp/nvidia-mps"}) {
    add_mount(from, socket, spec.edits);
  }
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
