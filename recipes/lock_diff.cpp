// The differences of two locks as lines of text.
#include <fmt/core.h>

#include "recipes/environment.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kEnv = "env ";

std::string line_of(const ValueChange& change) {
  const bool is_entry = change.name.starts_with(kEnv);
  if (is_entry && !change.to) return "- " + change.name;
  if (is_entry && !change.from) return fmt::format("+ {}={}", change.name, *change.to);
  return fmt::format("{}: {} → {}", change.name, change.from.value_or("none"),
                     change.to.value_or("none"));
}

std::string line_of(const PackageChange& change) {
  if (!change.from) return fmt::format("+ {} {}", change.to->name, change.to->version);
  if (!change.to) return fmt::format("- {} {}", change.from->name, change.from->version);
  const ListedPackage& from = *change.from;
  const ListedPackage& to = *change.to;
  if (from.version != to.version) {
    return fmt::format("{} {} → {}", to.name, from.version, to.version);
  }
  if (change.what == PackageChange::What::other_bytes) {
    return fmt::format("{} {}: other bytes ({} → {})", to.name, to.version, from.digest->brief(),
                       to.digest->brief());
  }
  return fmt::format("{} {}: described differently", to.name, to.version);
}

}  // namespace

std::vector<std::string> lock_differences(const Lock& from, const Lock& to) {
  const EnvironmentDiff diff = diff_locks(from, to);
  std::vector<std::string> lines;
  for (const ValueChange& one : diff.values) {
    // It follows from what else is different.
    if (one.name != "revision") lines.push_back(line_of(one));
  }
  for (const PackageChange& one : diff.debs) lines.push_back(line_of(one));
  for (const PackageChange& one : diff.wheels) lines.push_back(line_of(one));
  return lines;
}

}  // namespace mlenv
