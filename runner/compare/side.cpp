#include "runner/compare/side.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace mlenv::compare {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1";

constexpr std::array kSides = {
    SideSpec{"bare", "bare host", "the image's own programs, without any container", kLoopback},
    SideSpec{"builtin", "built-in container", "mlenv run", kLoopback},
    SideSpec{"docker", "Docker", "mlenv run --runtime docker", kLoopback},
    SideSpec{"podman", "podman", "mlenv run --runtime podman", kLoopback},
    // QEMU's user network has the host there.
    SideSpec{"vm", "virtual machine", "mlenv run --runtime vm", "10.0.2.2"},
};

}  // namespace

std::span<const SideSpec> side_specs() { return kSides; }

const SideSpec* find_side_spec(std::string_view id) {
  const auto* const found =
      std::find_if(kSides.begin(), kSides.end(), [&](const SideSpec& one) { return one.id == id; });
  return found == kSides.end() ? nullptr : found;
}

std::vector<std::string> run_words(const SideSpec& side, const SideTerms& terms,
                                   const std::vector<std::string>& options, const Wanted& wanted) {
  std::vector<std::string> words = {
      terms.program.string(), "-q",         "--json",  "run",      "--runtime",
      std::string(side.id),   "--no-check", "--label", terms.label};
  if (!wanted.project) words.emplace_back("--no-project");
  if (!terms.cpuset.empty() && side.id == "vm") {
    words.insert(words.end(), {"--cpus", fmt::format("{}", terms.processors)});
  } else if (!terms.cpuset.empty() && side.id != "builtin") {
    words.insert(words.end(), {"--cpuset-cpus", terms.cpuset});
  }
  if (!terms.memory.empty()) words.insert(words.end(), {"--memory", terms.memory});
  words.insert(words.end(), options.begin(), options.end());
  if (wanted.folder) {
    words.insert(words.end(), {"-v", terms.work.string() + ":" + std::string(kWorkTarget)});
    if (!wanted.project) words.insert(words.end(), {"-w", std::string(kWorkTarget)});
  }
  words.push_back(wanted.which == Which::image ? terms.image : terms.tools);
  words.emplace_back("--");
  words.insert(words.end(), wanted.argv.begin(), wanted.argv.end());
  return words;
}

}  // namespace mlenv::compare
