#pragma once
// NVIDIA_REQUIRE_*: what an image asks of driver and GPU, in the words of NVIDIA's container
// toolkit (its internal/requirements, read in November 2026): blanks are OR, commas AND; `cuda`,
// `driver` and `arch` are versions, `brand` is text; other properties count as absent.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// What conditions are about; empty: not known. Of `brand` several may be meant.
struct RequirementFacts {
  std::string cuda;             ///< `13.0`
  std::string driver;           ///< `580.65.06`
  std::string arch;             ///< `9.0`
  std::set<std::string> brand;  ///< `tesla`, `nvidia`
};

enum class Met { yes, no, unknown, not_understood };
Met requirement_met(std::string_view requirement, const RequirementFacts& facts);

/// Brands, as the toolkit names them, that a product of this name may be of.
std::set<std::string> brands_of(std::string_view product);

}  // namespace mlenv
