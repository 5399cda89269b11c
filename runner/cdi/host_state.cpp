#include "runner/cdi/host_state.hpp"

#include <fmt/core.h>

namespace mlenv {

std::string file_stamp(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return path.string() + ": absent\n";
  return fmt::format("{}: {} {}.{} {}\n", path.string(), info.st_ino, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_rdev);
}

std::string boot_state() {
  return read_file_if_exists("/proc/sys/kernel/random/boot_id").value_or("") + "\n";
}

namespace {

/// Instances that GPUs are split into: their numbers change with the split, and no file's time
/// does.
std::string instances() {
  std::string text;
  const auto folders = [](const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code error;
    for (const fs::path& path : list_folder(folder)) {
      if (fs::is_directory(path, error)) found.push_back(path);
    }
    return found;
  };
  for (const fs::path& gpu : folders("/proc/driver/nvidia/capabilities")) {
    for (const fs::path& instance : folders(gpu / "mig")) {
      text += instance.string() + "\n";
      for (const fs::path& part : folders(instance)) text += part.string() + "\n";
    }
  }
  return text;
}

}  // namespace

std::string nvidia_state() {
  std::string text = boot_state();
  text += read_file_if_exists("/sys/module/nvidia/version").value_or("") + "\n";
  text += file_stamp("/etc/ld.so.cache");
  text += instances();
  for (const char* folder : {"/dev", "/dev/nvidia-caps"}) {
    for (const fs::path& node : list_folder(folder)) {
      const std::string name = node.filename().string();
      if (name.starts_with("nvidia") || name == "dxg") text += file_stamp(node);
    }
  }
  return text;
}

}  // namespace mlenv
