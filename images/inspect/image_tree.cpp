#include "images/inspect/image_tree.hpp"

#include <algorithm>
#include <deque>

#include "base/paths.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr int kMostTreeLinks = 40;  // path_resolution(7)

/// By path, for one layer; both lists are sorted, but hard links look elsewhere.
template <class Item>
const Item* find_item(const std::vector<Item>& items, const std::string& path) {
  const auto found = std::lower_bound(
      items.begin(), items.end(), path,
      [](const Item& item, const std::string& wanted) { return item.path < wanted; });
  return found != items.end() && found->path == path ? &*found : nullptr;
}

}  // namespace

ImageTree::ImageTree(std::vector<LayerFacts> layers) : layers_(std::move(layers)) {
  for (const LayerFacts& layer : layers_) stack(layer);
}

void ImageTree::hide(Nodes::iterator node) {
  const LayerEntry& entry = *node->second.entry;
  if (entry.kind == "file") {
    hidden_bytes_ += entry.bytes;
    ++hidden_files_;
  }
  nodes_.erase(node);
}

void ImageTree::hide_below(const std::string& folder) {
  if (folder.empty()) {
    while (!nodes_.empty()) hide(nodes_.begin());
    return;
  }
  const std::string first = folder + "/";
  for (auto at = nodes_.lower_bound(first); at != nodes_.end() && at->first.starts_with(first);) {
    hide(at++);
  }
}

void ImageTree::hide_at(const std::string& path) {
  if (const auto at = nodes_.find(path); at != nodes_.end()) hide(at);
}

void ImageTree::stack(const LayerFacts& layer) {
  for (const LayerEntry& entry : layer.entries) {
    if (entry.kind != "gone" && entry.kind != "opaque") continue;
    if (entry.kind == "gone") hide_at(entry.path);
    hide_below(entry.path);
  }
  for (const LayerEntry& entry : layer.entries) {
    if (entry.kind == "gone" || entry.kind == "opaque") continue;
    hide_at(entry.path);
    if (entry.kind == "folder") continue;
    hide_below(entry.path);
    all_bytes_ += entry.kind == "file" ? entry.bytes : 0;
    const std::string& owner = entry.kind == "same" ? entry.link : entry.path;
    const LayerElf* elf = find_item(layer.elves, owner);
    const LayerText* text = find_item(layer.texts, owner);
    nodes_[entry.path] = {&entry, elf != nullptr ? &elf->elf : nullptr,
                          text != nullptr ? &text->text : nullptr};
  }
}

std::optional<std::string> ImageTree::resolve(std::string_view path) const {
  std::deque<std::string> left;
  for (const std::string_view part : split(path, '/')) left.emplace_back(part);
  std::string at;
  int links = 0;
  while (!left.empty()) {
    const std::string part = std::move(left.front());
    left.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at = std::string(folder_of(at));
      continue;
    }
    std::string next = below(at, part);
    const auto found = nodes_.find(next);
    if (found == nodes_.end() || found->second.entry->kind != "link") {
      at = std::move(next);
      continue;
    }
    if (++links > kMostTreeLinks) return std::nullopt;
    const std::string& target = found->second.entry->link;
    if (target.starts_with('/')) at.clear();
    const std::vector<std::string_view> parts = split(target, '/');
    for (auto one = parts.rbegin(); one != parts.rend(); ++one) left.emplace_front(*one);
  }
  const auto found = nodes_.find(at);
  if (found == nodes_.end()) return std::nullopt;
  return at;
}

const ImageTree::Node* ImageTree::find(std::string_view path) const {
  const auto at = resolve(path);
  if (!at) return nullptr;
  const auto found = nodes_.find(*at);
  return found == nodes_.end() ? nullptr : &found->second;
}

}  // namespace mlenv
