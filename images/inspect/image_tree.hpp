#pragma once
// An image's layers as one tree, as a container sees it: later layers replace and hide what
// earlier ones hold (image-spec layer.md, "Whiteouts").
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/layer_facts.hpp"

namespace mlenv {

class ImageTree {
 public:
  /// The bottom layer first.
  explicit ImageTree(std::vector<LayerFacts> layers);
  ImageTree(const ImageTree&) = delete;
  ImageTree& operator=(const ImageTree&) = delete;
  ~ImageTree() = default;

  struct Node {
    const LayerEntry* entry = nullptr;
    const ElfFile* elf = nullptr;       ///< of hard links too
    const std::string* text = nullptr;  ///< of those that are kept
  };
  /// All that is in sight but folders, by path without a leading `/`.
  const std::map<std::string, Node, std::less<>>& nodes() const { return nodes_; }

  /// The true path of what `path` (absolute or not) leads to once all links are followed; nullopt
  /// when that is no file.
  std::optional<std::string> resolve(std::string_view path) const;
  /// The file that it leads to; nullptr when there is none.
  const Node* find(std::string_view path) const;

  /// Of regular files in all layers, each hard-linked one once.
  std::uint64_t all_bytes() const { return all_bytes_; }
  /// Of those that a later layer replaced or removed.
  std::uint64_t hidden_bytes() const { return hidden_bytes_; }
  std::uint64_t hidden_files() const { return hidden_files_; }

 private:
  using Nodes = std::map<std::string, Node, std::less<>>;
  void stack(const LayerFacts& layer);
  void hide(Nodes::iterator node);
  void hide_below(const std::string& folder);
  void hide_at(const std::string& path);

  std::vector<LayerFacts> layers_;
  Nodes nodes_;
  std::uint64_t all_bytes_ = 0;
  std::uint64_t hidden_bytes_ = 0;
  std::uint64_t hidden_files_ = 0;
};

}  // namespace mlenv
