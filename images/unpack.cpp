#include "images/unpack.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/pool.hpp"
#include "images/tree_writer.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {

fs::path unpack_layer(Store& store, const Layer& layer, Progress& progress) {
  if (auto tree = store.find_tree(layer.diff_id)) return *std::move(tree);
  return while_doing("unpacking the layer `" + layer.shown_name() + "`", [&] {
    Activity activity{progress, "unpacking " + layer.shown_name(), layer.blob.size_bytes};
    Store::StagedTree staged = store.stage_tree();
    TreeWriter writer{staged.fs_path()};
    // The root of a layer that says nothing about it.
    writer.add_folder(".", {.mode = 0755});
    read_layer(
        store, layer, [&](std::uint64_t bytes) { activity.advance(bytes); },
        [&](const TarEntry& entry, Source& data) { writer.add(entry, data); });
    writer.finish();
    return staged.publish(layer.diff_id);
  });
}

std::vector<fs::path> unpack_image(Store& store, const Image& image, Progress& progress) {
  std::map<Digest, const Layer*> distinct;
  for (const Layer& layer : image.layers) distinct.emplace(layer.diff_id, &layer);
  std::vector<const Layer*> queue;
  for (const auto& [diff_id, layer] : distinct) queue.push_back(layer);
  // Large layers first, so that none is left over at the end.
  std::stable_sort(queue.begin(), queue.end(), [](const Layer* a, const Layer* b) {
    return a->blob.size_bytes > b->blob.size_bytes;
  });
  std::vector<fs::path> done(queue.size());
  Pool pool;
  pool.for_each(queue.size(),
                [&](std::size_t i) { done[i] = unpack_layer(store, *queue[i], progress); });

  std::map<Digest, fs::path> trees;
  for (std::size_t i = 0; i < queue.size(); ++i) trees.emplace(queue[i]->diff_id, done[i]);
  std::vector<fs::path> out;
  for (const Layer& layer : image.layers) out.push_back(trees.at(layer.diff_id));
  return out;
}

}  // namespace mlenv
