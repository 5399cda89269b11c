#pragma once
// What of this machine a container gets so that the network, apt and pip work in it as they do
// outside: resolver, host names, proxies, certificates, package sources. Only the throwaway layer
// is written to.
#include <map>
#include <string>
#include <vector>

#include "runner/local/image_root.hpp"

namespace mlenv {

using Variables = std::map<std::string, std::string>;

/// Where the container sees `Machine::folder`.
inline constexpr std::string_view kMachineTarget = "/run/mlenv";

struct Machine {
  fs::path root = "/";     ///< a folder of fixtures in tests
  Variables environment;   ///< the caller's
  fs::path folder;         ///< holds certificates and keyrings for the container; made when absent
  bool single_id = false;  ///< no other user exists in the container
  bool network = true;     ///< resolver and host names, too
  std::string home = "/root";  ///< of the job: the caller's own settings go below it
  /// Gets the paths of files that were written and that a later start may have to remove.
  std::vector<std::string>* written = nullptr;
};

/// Writes the settings into `image` and `machine.folder`, and returns the variables (`K=V`, sorted)
/// that go with them: proxies, index URLs, and certificate bundles by their path in the container.
/// What the image says itself stays: its own apt sources and pip settings are not replaced.
/// Settings that are absent here are left out.
std::vector<std::string> bring_machine(const ImageRoot& image, const Machine& machine);

/// Removes what an earlier start wrote into a layer that was kept (`Machine::written`), so that no
/// setting and no login of then goes on; what the person has put in its place stays.
void take_back(const ImageRoot& image, const std::vector<std::string>& written);

/// This process's own variables.
Variables caller_variables();

}  // namespace mlenv
