#pragma once
// Unpacked layers seen as one tree, as overlayfs stacks them, without mounting anything.
#include <sys/stat.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

class LayerStack {
 public:
  struct Found {
    fs::path path;  ///< on the host, in the topmost tree that has it
    struct stat status {};
    std::size_t tree = 0;
  };

  /// `trees`: the bottom one first; whiteouts and opaque folders as overlayfs marks them.
  explicit LayerStack(std::vector<fs::path> trees) : trees_(std::move(trees)) {}

  const std::vector<fs::path>& trees() const { return trees_; }
  /// What lies at `path` (relative to the root; `` is the root); nullopt when there is nothing.
  /// Links are not followed, neither there nor on the way.
  std::optional<Found> find(const std::string& path);
  /// The same in the trees below `limit` alone.
  std::optional<Found> find_below(const std::string& path, std::size_t limit);
  /// What lies in a folder (paths as above), sorted; nothing where there is no folder.
  std::vector<std::string> entries(const std::string& folder);

 private:
  const std::vector<std::size_t>& holders(const std::string& folder);
  std::vector<fs::path> trees_;
  std::map<std::string, std::vector<std::size_t>> folders_;  // trees that make it up, top first
};

}  // namespace mlenv
