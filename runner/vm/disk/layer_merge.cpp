#include "runner/vm/disk/layer_merge.hpp"

namespace mlenv {

void LayerMerge::begin_layer() {
  ++layer_;
  hidden_.insert(hidden_here_.begin(), hidden_here_.end());
  opaque_.insert(opaque_here_.begin(), opaque_here_.end());
  hidden_here_.clear();
  opaque_here_.clear();
}

bool LayerMerge::shows(std::string_view path, Kind kind) const {
  if (opaque_.contains(".")) return false;
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string_view above = path.substr(0, slash);
    if (hidden_.contains(above) || opaque_.contains(above)) return false;
    const Seen* const there = find(above);
    if (there != nullptr && there->kind == Kind::other && there->layer != layer_) return false;
  }
  if (hidden_.contains(path)) return false;
  const Seen* const there = find(path);
  if (there == nullptr || there->layer == layer_) return true;
  return there->kind == Kind::folder && kind == Kind::folder && there->implied;
}

void LayerMerge::add(const std::string& path, Kind kind, bool implied) {
  seen_[path] = {kind, layer_, implied};
}

const LayerMerge::Seen* LayerMerge::find(std::string_view path) const {
  const auto found = seen_.find(path);
  return found == seen_.end() ? nullptr : &found->second;
}

}  // namespace mlenv
