#pragma once
// Layers laid over one another while they are read from the top: what of a lower one can still be
// seen (image-spec layer.md, "Whiteouts").
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

class LayerMerge {
 public:
  enum class Kind { folder, other };
  struct Seen {
    Kind kind = Kind::other;
    std::size_t layer = 0;
    bool implied = false;  ///< a folder that no entry has told of yet
  };

  /// The next layer, below those so far.
  void begin_layer();
  std::size_t layer() const { return layer_; }

  /// Whether an entry of this layer shows: no upper layer hides it or has something in its place.
  /// Of two folders at one place the upper one's attributes count: the lower one does not show.
  bool shows(std::string_view path, Kind kind) const;
  void add(const std::string& path, Kind kind, bool implied = false);
  const Seen* find(std::string_view path) const;

  /// For the layers below: this path is hidden, or all that is in this folder.
  void hide(std::string path) { hidden_here_.push_back(std::move(path)); }
  void hide_below(std::string folder) { opaque_here_.push_back(std::move(folder)); }

 private:
  std::size_t layer_ = 0;
  std::map<std::string, Seen, std::less<>> seen_;
  std::set<std::string, std::less<>> hidden_;
  std::set<std::string, std::less<>> opaque_;
  std::vector<std::string> hidden_here_;
  std::vector<std::string> opaque_here_;
};

}  // namespace mlenv
