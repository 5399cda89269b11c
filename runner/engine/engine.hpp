#pragma once
// Docker and podman as what runs a container on this machine: `--runtime docker|podman`.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.hpp"
#include "runner/local/options.hpp"

namespace mlenv {

/// What is known of one, and of the image as it has it. Plain values.
struct ContainerEngine {
  std::string name;     ///< `docker`, `podman`
  std::string program;  ///< its path
  std::string version;
  std::string oci_runtime;  ///< path of the one that it is told to use; empty: its own choice
  /// Root of a container is whoever runs mlenv, and other ids are none of theirs.
  bool rootless = false;
  bool keeps_groups = false;  ///< of podman: supplementary groups of the caller can be kept
  bool swap_limit = false;    ///< it counts swap
  std::vector<std::string> controllers;  ///< of control groups that it sets limits with
  std::string image;                     ///< what it calls the image
  bool is_podman() const { return name == "podman"; }
  /// For records: `podman 4.3.1`, with the OCI runtime where that is not its own choice.
  std::string title() const;
  friend bool operator==(const ContainerEngine&, const ContainerEngine&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("program", self.program);
    visit("version", self.version);
    visit("oci_runtime", self.oci_runtime);
    visit("rootless", self.rootless);
    visit("keeps_groups", self.keeps_groups);
    visit("swap_limit", self.swap_limit);
    visit("controllers", self.controllers);
    visit("image", self.image);
  }
};

/// Whether the word of `--runtime` means one of them.
bool is_engine(std::string_view runtime);

/// Asks it. Throws `no-engine` where it is not installed, `engine-down` where Docker's daemon does
/// not answer or podman does not work, `engine-denied` where this user may not talk to it,
/// `no-runtime` where podman's OCI runtime cannot work here and there is no other.
ContainerEngine find_engine(const std::string& name);

/// What is asked for with little work is answered within it.
inline constexpr std::chrono::seconds kEngineAnswer{60};

/// Runs a command of it to the end, in `folder`.
Captured ask(const ContainerEngine& engine, std::vector<std::string> words,
             std::chrono::milliseconds deadline, const fs::path& folder = {});

/// Throws `no-limit` for what the engine would leave out.
void check_limits(const ContainerEngine& engine, const JobLimits& limits);

}  // namespace mlenv
