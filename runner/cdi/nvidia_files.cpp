#include "runner/cdi/nvidia_files.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "images/inspect/linker_cache.hpp"

namespace mlenv {
namespace {

using MountOptions = std::vector<std::string>;

/// Where images of NVIDIA's expect a driver's libraries.
constexpr std::string_view kLibraries = "/usr/local/nvidia/lib64";

const MountOptions& read_only() {
  static const MountOptions options{"ro", "nosuid", "nodev", "rbind", "rprivate"};
  return options;
}

/// A client connects to a socket, and writes to the pipes in a folder.
const MountOptions& of_a_daemon() {
  static const MountOptions options{"nosuid", "nodev", "noexec", "rbind", "rprivate"};
  return options;
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

struct Driver {
  std::string version;  ///< `580.65.06`
  fs::path prefix;      ///< the folder above its libraries' folder: `/usr/lib`, `/usr/local/nvidia`
};

/// As libcuda's file says it.
Driver installed_driver(const FactSources& from, const std::vector<CachedLibrary>& libraries) {
  constexpr std::string_view kStem = "libcuda.so.";
  for (const CachedLibrary& one : libraries) {
    if (one.name != "libcuda.so.1") continue;
    const fs::path library = real_path(from, one.path);
    const std::string name = library.filename().string();
    if (!name.starts_with(kStem)) continue;
    return {name.substr(kStem.size()), library.parent_path().parent_path()};
  }
  throw failure("no-device", "the NVIDIA driver's libraries are not installed")
      .because("a driver runs, and the linker's cache `/etc/ld.so.cache` has no `libcuda.so.1`")
      .hint("install them (Debian: `libcuda1`), or let root run `ldconfig` where they are");
}

bool is_drivers(const CachedLibrary& library, const std::string& real, const std::string& version) {
  return real.ends_with(".so." + version) || library.name.starts_with("libnvidia-egl-");
}

void add_libraries(const FactSources& from, const std::vector<CachedLibrary>& libraries,
                   const std::string& version, CdiEdits& edits) {
  std::set<std::string> taken;
  for (const CachedLibrary& one : libraries) {
    const std::string real = real_path(from, one.path);
    if (!is_drivers(one, real, version) || !taken.insert(one.name).second) continue;
    edits.mounts.push_back({real, fmt::format("{}/{}", kLibraries, one.name), "", read_only()});
    // What is linked or loaded by that name (Numba, Triton).
    if (one.name == "libcuda.so.1" && taken.insert("libcuda.so").second) {
      edits.mounts.push_back({real, fmt::format("{}/libcuda.so", kLibraries), "", read_only()});
    }
  }
  edits.library_folders.emplace_back(kLibraries);
}

bool is_script(const FactSources& from, const fs::path& program) {
  std::array<char, 2> begin{};
  std::ifstream file(from.at(program), std::ios::binary);
  return file.read(begin.data(), begin.size()) && begin == std::array{'#', '!'};
}

/// Programs, shown in /usr/bin. A driver with a folder of its own (an image of the driver that is
/// mounted there) has them in that folder, and in /usr/bin at most a script that starts them,
/// which in a container would not find them.
void add_programs(const FactSources& from, const fs::path& prefix, CdiEdits& edits) {
  for (const char* name :
       {"nvidia-smi", "nvidia-debugdump", "nvidia-persistenced", "nvidia-cuda-mps-control",
        "nvidia-cuda-mps-server", "nvidia-imex", "nvidia-imex-ctl"}) {
    const std::string shown = std::string("/usr/bin/") + name;
    std::string program = shown;
    if (!present(from, shown) || is_script(from, shown)) {
      const fs::path own = prefix / "bin" / name;
      if (present(from, own)) program = own.string();
    }
    if (present(from, program)) edits.mounts.push_back({program, shown, "", read_only()});
  }
}

void add_daemons(const FactSources& from, CdiEdits& edits) {
  for (const char* path :
       {"/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket", "/tmp/nvidia-mps"}) {
    if (present(from, path)) edits.mounts.push_back({path, path, "", of_a_daemon()});
  }
}

/// What the GPU's own processor runs, where the kernel looks for it (firmware_class).
void add_firmware(const FactSources& from, const std::string& version, CdiEdits& edits) {
  const std::string release{trim(file_text(from, "/proc/sys/kernel/osrelease").value.value_or(""))};
  const fs::path firmware = "/lib/firmware";
  for (const fs::path& folder :
       {firmware / "updates" / release, firmware / "updates", firmware / release, firmware}) {
    const fs::path own = (folder / "nvidia" / version).lexically_normal();
    for (const std::string& name : names_in(from, own).value.value_or(std::vector<std::string>{})) {
      const bool is_wanted = name.starts_with("gsp") || name.starts_with("ucodes");
      if (is_wanted && name.ends_with(".bin")) add_mount(from, (own / name).string(), edits);
    }
  }
}

/// Files that loaders look up, in the first of the folders that has them, where a container's
/// loader looks.
void add_loader_files(const FactSources& from, const fs::path& prefix, std::string_view shown_in,
                      std::initializer_list<const char*> names, CdiEdits& edits) {
  for (const char* const name : names) {
    for (const fs::path& folder : {fs::path("/etc"), fs::path("/usr/local/share"),
                                   fs::path("/usr/share"), prefix / "share"}) {
      if (!present(from, folder / name)) continue;
      edits.mounts.push_back(
          {(folder / name).string(), fmt::format("{}/{}", shown_in, name), "", read_only()});
      break;
    }
  }
}

void add_loaders_files(const FactSources& from, const fs::path& prefix, CdiEdits& edits) {
  add_loader_files(
      from, prefix, "/usr/share",
      {"glvnd/egl_vendor.d/10_nvidia.json", "egl/egl_external_platform.d/15_nvidia_gbm.json",
       "egl/egl_external_platform.d/10_nvidia_wayland.json",
       "egl/egl_external_platform.d/09_nvidia_wayland2.json",
       "egl/egl_external_platform.d/20_nvidia_xcb.json",
       "egl/egl_external_platform.d/20_nvidia_xlib.json", "nvidia/nvoptix.bin"},
      edits);
  add_loader_files(
      from, prefix, "/etc",
      {"OpenCL/vendors/nvidia.icd", "vulkan/icd.d/nvidia_icd.json",
       "vulkan/icd.d/nvidia_icd.x86_64.json", "vulkan/icd.d/nvidia_icd.aarch64.json",
       "vulkan/icd.d/nvidia_layers.json", "vulkan/implicit_layer.d/nvidia_layers.json"},
      edits);
}

}  // namespace

void add_mount(const FactSources& from, const std::string& path, CdiEdits& edits) {
  if (present(from, path)) edits.mounts.push_back({path, path, "", read_only()});
}

void add_driver_files(const FactSources& from, CdiEdits& edits) {
  const std::vector<CachedLibrary> libraries = host_libraries(from);
  const Driver driver = installed_driver(from, libraries);
  add_libraries(from, libraries, driver.version, edits);
  add_programs(from, driver.prefix, edits);
  add_daemons(from, edits);
  add_firmware(from, driver.version, edits);
  add_loaders_files(from, driver.prefix, edits);
}

}  // namespace mlenv
