#include "images/inspect/waste.hpp"

#include <map>
#include <string_view>

namespace mlenv {
namespace {

/// Where programs keep what they can get again; empty: elsewhere.
std::string_view kind_of(std::string_view path) {
  const auto has = [path](std::string_view part) {
    return path.find(part) != std::string_view::npos;
  };
  if (has("/.cache/pip/")) return "pip-cache";
  if (has("/.cache/uv/")) return "uv-cache";
  if (path.starts_with("var/lib/apt/lists/")) return "apt-lists";
  if (path.starts_with("var/cache/apt/")) return "apt-cache";
  return {};
}

}  // namespace

std::vector<Waste> waste_in(const ImageTree& tree) {
  std::map<std::string, Waste> found;
  const auto add = [&found](std::string_view kind, std::uint64_t bytes, std::uint64_t files) {
    Waste& waste = found[std::string(kind)];
    waste.kind = kind;
    waste.bytes += bytes;
    waste.files += files;
  };
  for (const auto& [path, node] : tree.nodes()) {
    const std::string_view kind = kind_of(path);
    if (!kind.empty() && node.entry->bytes > 0) add(kind, node.entry->bytes, 1);
  }
  if (tree.hidden_files() > 0) add("shadowed", tree.hidden_bytes(), tree.hidden_files());
  std::vector<Waste> list;
  for (auto& [kind, waste] : found) list.push_back(std::move(waste));
  return list;
}

}  // namespace mlenv
