#pragma once
// What of a store nobody needs any more (docs/store.md, "gc").
//
// Needed is what a name leads to, now or before (rollback), what the caller says, and what a
// process that lives has found or made: its image, layers, their wheels and trees. All else is
// garbage: images without a name, packages and steps of builds that no image consists of.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"

namespace mlenv {

struct GarbageSettings {
  /// What others than names need: images and code of runs. Asked once it is known who lives, so
  /// that who ends meanwhile has said what it leaves; others wait for the answer.
  std::function<std::vector<Digest>()> needed{};
  bool forget_history = false;         ///< what names meant before is not needed
  std::chrono::seconds unused_for{0};  ///< what was used since stays; uses are known to the hour
  /// No more goes than it takes to come down to so many bytes; what was used longest ago goes
  /// first.
  std::optional<std::uint64_t> keep{};
  bool only_look = false;                      ///< nothing is taken away
  std::function<void(std::uint64_t)> freed{};  ///< so many bytes more
};

struct Garbage {
  struct Share {
    std::size_t count = 0;
    std::uint64_t bytes = 0;  ///< on the disk (st_blocks); of a blob that no other link holds
  };
  Share images;       ///< manifests and indexes
  Share blobs;        ///< layers, configs, wheels, packages, code
  Share trees;        ///< unpacked layers
  Share keys;         ///< what build steps gave
  Share spared;       ///< needed by nobody, but used too lately, or not in the way
  Share for_runs;     ///< needed by nothing but `needed`
  Share for_history;  ///< needed by nothing but what names meant before
  Share stuck;        ///< needed by nobody, and could not be taken away
  std::string stuck_because;
  /// A process lives since then, and may need what was used since; 1970: nobody knows since when.
  std::optional<std::chrono::system_clock::time_point> held_since;
  std::uint64_t bytes() const { return images.bytes + blobs.bytes + trees.bytes + keys.bytes; }
};

}  // namespace mlenv
