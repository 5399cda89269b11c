#pragma once
// Which instructions builds of Python packages do not start without: said by the projects, or by
// what their wheels check when they are imported. A package without a row asks for none that is
// known.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/image_facts.hpp"

namespace mlenv {

struct CpuRow {
  std::string_view package;  ///< normalised
  std::string_view since;    ///< first version
  bool always;               ///< all that there are for Python 3.9 and newer are no older
  std::string_view flags;    ///< by the kernel's names, or `x86-64-v2` for a level's
  std::string_view source;
  std::string_view read;  ///< `2026-11`
};
std::span<const CpuRow> cpu_rows();

/// Of builds on the Python index for x86-64; empty where nothing is known. Without a version: of
/// whichever is taken.
std::vector<std::string> known_cpu_flags(std::string_view package, std::string_view version);

/// Of `x86-64-v2` and higher (2, 3, 4): x86-64 psABI, "Micro-Architecture Levels", by the names in
/// /proc/cpuinfo. Sorted; each level has those of the levels before it too.
std::vector<std::string> flags_of_level(std::uint64_t level);

}  // namespace mlenv
