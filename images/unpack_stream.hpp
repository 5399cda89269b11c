#pragma once
// The tar inside a layer as a Source: read from the store, decompressed and hashed in a thread of
// its own, so that writing the tree overlaps with it. A few megabytes of memory.
#include <functional>
#include <memory>

#include "base/tar.hpp"
#include "images/store.hpp"

namespace mlenv {

class LayerTar final : public Source {
 public:
  /// `advance` is told how many bytes of the blob were read, from the other thread.
  LayerTar(const Store& store, const Digest& blob, std::function<void(std::uint64_t)> advance);
  LayerTar(const LayerTar&) = delete;
  LayerTar& operator=(const LayerTar&) = delete;
  /// Stops the thread.
  ~LayerTar() override;

  /// Throws what the thread threw: an absent blob, a malformed stream.
  std::size_t read(ByteSpan out) override;
  /// Reads what is left; returns the digest of the whole tar, the layer's diff-id.
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Passes each entry of the layer to `take`. Throws `damaged` when the tar's digest is not
/// `layer.diff_id`; that is known only after the last entry.
void read_layer(const Store& store, const Layer& layer,
                const std::function<void(std::uint64_t)>& advance,
                const std::function<void(const TarEntry&, Source& data)>& take);

}  // namespace mlenv
