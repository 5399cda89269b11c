#pragma once
// The sides: ways to start a command of an image.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runner/compare/bare.hpp"

namespace mlenv::compare {

struct SideSpec {
  std::string_view id;  ///< also a value of `--runtime`, but for the bare host
  std::string_view title;
  std::string_view how;      ///< it is started
  std::string_view network;  ///< where a process on it finds this host's loopback
};
/// In the report's order; the first one is what the others are held against.
std::span<const SideSpec> side_specs();
const SideSpec* find_side_spec(std::string_view id);

enum class Which { image, tools };

/// What is started on it.
struct Wanted {
  Which which = Which::image;
  std::vector<std::string> argv;
  bool folder = false;   ///< the work folder is there, and it starts in it
  bool project = false;  ///< it starts in the person's own folder instead
};

/// What all starts have in common.
struct SideTerms {
  fs::path program;   ///< mlenv's own
  std::string image;  ///< digest
  std::string tools;  ///< the same; empty: there is none
  fs::path work;      ///< on the host: scripts, data, what fio writes
  std::string label;  ///< of the records of these runs: `K=V`
  std::uint64_t processors = 0;
  std::string cpuset;  ///< the processors, as `--cpuset-cpus` takes them; empty: all of ours
  std::string memory;  ///< word of `--memory`; empty: no limit
};

/// Where the work folder is in a container.
inline constexpr std::string_view kWorkTarget = "/mlenv-compare";

/// `mlenv run` of it. `options` are the side's own. The built-in runtime is given processors by
/// affinity, which it inherits.
std::vector<std::string> run_words(const SideSpec& side, const SideTerms& terms,
                                   const std::vector<std::string>& options, const Wanted& wanted);

}  // namespace mlenv::compare
