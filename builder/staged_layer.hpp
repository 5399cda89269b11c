#pragma once
// A layer on its way into the store: blob and, when wanted, unpacked tree.
#include <optional>
#include <string>

#include "builder/layer_writer.hpp"

namespace mlenv {

class StagedLayer {
 public:
  StagedLayer(Store& store, std::int64_t epoch, bool unpack) : store_(store) {
    if (unpack) {
      staged_.emplace(store.stage_tree());
      tree_.emplace(staged_->fs_path());
    }
    writer_.emplace(tree_ ? &*tree_ : nullptr, epoch, store.hashes());
  }
  LayerWriter& writer() { return *writer_; }

  /// Ends the archive and puts all into the store.
  Layer publish(std::string title) {
    MadeLayer made = writer_->finish(std::move(title));
    store_.put_spliced(made.layer.blob.digest, made.layer.blob.size_bytes, made.spliced);
    if (staged_) staged_->publish(made.layer.diff_id);
    return std::move(made.layer);
  }

 private:
  Store& store_;
  std::optional<Store::StagedTree> staged_;
  std::optional<TreeWriter> tree_;
  std::optional<LayerWriter> writer_;
};

}  // namespace mlenv
