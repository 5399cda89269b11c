#include "recipes/resolve/popular_names.hpp"

#include <algorithm>

#include "recipes/module_distributions.hpp"
#include "recipes/packed_tables.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {

std::string meant_package(std::string_view name) {
  constexpr std::size_t kMostEdits = 2;
  constexpr std::size_t kLongest = 64;
  if (name.empty() || name.size() > kLongest) return {};
  const std::string wanted = normalise_wheel_name(name);
  const std::string text = popular_names_table();
  std::string_view best;
  std::size_t best_distance = std::min(kMostEdits, (wanted.size() - 1) / 3) + 1;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with('#')) continue;
    for (const std::string_view popular : split(line, ' ')) {
      const std::size_t distance = edit_distance(wanted, popular, kMostEdits);
      if (distance == 0) return {};
      if (distance >= best_distance) continue;
      best = popular;
      best_distance = distance;
    }
  }
  const std::string_view of_module = distribution_of_module(name);
  if (!of_module.empty() && normalise_wheel_name(of_module) != wanted)
    return std::string(of_module);
  return std::string(best);
}

}  // namespace mlenv
