#include "builder/run/layer_stack.hpp"

#include <cerrno>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

/// False when there is nothing.
bool status_of(const fs::path& path, struct stat& status) {
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw os_error(errno, "cannot read `{}`", path.string());
}

}  // namespace

const std::vector<std::size_t>& LayerStack::holders(const std::string& folder) {
  if (const auto known = folders_.find(folder); known != folders_.end()) return known->second;
  std::vector<std::size_t> found;
  if (folder.empty()) {
    for (std::size_t i = trees_.size(); i-- > 0;) found.push_back(i);
  } else {
    for (const std::size_t tree :
         std::vector<std::size_t>(holders(std::string(folder_of(folder))))) {
      struct stat status {};
      if (!status_of(trees_[tree] / folder, status)) continue;
      if (!S_ISDIR(status.st_mode)) break;
      found.push_back(tree);
      if (has_opaque_mark(trees_[tree] / folder)) break;
    }
  }
  return folders_.emplace(folder, std::move(found)).first->second;
}

std::optional<LayerStack::Found> LayerStack::find(const std::string& path) {
  return find_below(path, trees_.size());
}

std::optional<LayerStack::Found> LayerStack::find_below(const std::string& path,
                                                        std::size_t limit) {
  for (const std::size_t tree : holders(std::string(folder_of(path)))) {
    if (tree >= limit) continue;
    Found found{trees_[tree] / path, {}, tree};
    if (!status_of(found.path, found.status)) continue;
    if (is_whiteout(found.status)) return std::nullopt;
    return found;
  }
  return std::nullopt;
}

std::vector<std::string> LayerStack::entries(const std::string& folder) {
  std::set<std::string> paths;
  for (const std::size_t tree : holders(folder)) {
    for (const fs::path& entry : list_folder(trees_[tree] / folder)) {
      paths.insert(below(folder, entry.filename().string()));
    }
  }
  std::erase_if(paths, [&](const std::string& path) { return !find(path); });
  return {paths.begin(), paths.end()};
}

}  // namespace mlenv
