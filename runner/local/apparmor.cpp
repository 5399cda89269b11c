#include "runner/local/apparmor.hpp"

namespace mlenv {

std::string loaded_container_profile(const fs::path& root) {
  const std::string enabled =
      read_file_if_exists(root / "sys/module/apparmor/parameters/enabled").value_or("");
  if (!enabled.starts_with('Y')) return {};
  // The list of profiles is for root alone; the folder of each, NAME.NUMBER, is for all to see.
  const std::string prefix = std::string(kContainerProfile) + ".";
  std::error_code error;
  fs::directory_iterator entry{root / "sys/kernel/security/apparmor/policy/profiles", error};
  for (; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) {
      return std::string(kContainerProfile);
    }
  }
  return {};
}

}  // namespace mlenv
