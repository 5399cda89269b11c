#pragma once
// The files under history/: what a name meant before, one image a line, the oldest first, as
// `SECONDS sha256:HEX` with the time at which the name was given to it. For images/store*.cpp only.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"

namespace mlenv {

struct PastName {
  std::int64_t since = 0;  ///< seconds since 1970
  Digest manifest;
  friend bool operator==(const PastName&, const PastName&) = default;
};

/// How many are remembered of each name.
inline constexpr std::size_t kMostPastNames = 20;

/// Lines that are none are left out: a torn file costs what it tore, and no name its meaning.
std::vector<PastName> parse_name_history(std::string_view text);
std::string render_name_history(const std::vector<PastName>& past);

/// `past` once the name moved from `was` to `is`: each image once, where it was left last.
std::vector<PastName> after_move(std::vector<PastName> past, const PastName& was, const Digest& is);

}  // namespace mlenv
