#include "images/unpack_stream.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/inflate.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;
constexpr std::size_t kBlocks = 4;

class ReadCountingSource final : public Source {
 public:
  ReadCountingSource(Source& from, const std::function<void(std::uint64_t)>& advance)
      : from_(from), advance_(advance) {}
  std::size_t read(ByteSpan out) override {
    const std::size_t count = from_.read(out);
    advance_(count);
    return count;
  }

 private:
  Source& from_;
  const std::function<void(std::uint64_t)>& advance_;
};

/// Ends the thread's work when nobody reads any more.
struct Abandoned {};

}  // namespace

/// A bounded queue of blocks between the thread, which fills them, and the reader.
struct LayerTar::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Bytes> blocks;
  bool ended = false;      ///< by the thread
  bool abandoned = false;  ///< by the reader
  std::exception_ptr error;
  Sha256 hash;    // the thread's
  Bytes filling;  // the thread's
  Bytes reading;  // the reader's
  std::size_t at = 0;
  std::thread thread;

  void push(ByteView data) {
    hash.write(data);
    while (!data.empty()) {
      const std::size_t count = std::min(data.size(), kBlockBytes - filling.size());
      filling.insert(filling.end(), data.begin(),
                     data.begin() + static_cast<std::ptrdiff_t>(count));
      data = data.subspan(count);
      if (filling.size() == kBlockBytes) hand_over();
    }
  }

  void hand_over() {
    std::unique_lock lock{mutex};
    changed.wait(lock, [this] { return abandoned || blocks.size() < kBlocks; });
    if (abandoned) throw Abandoned{};
    blocks.push_back(std::move(filling));
    changed.notify_all();
    filling = {};
    filling.reserve(kBlockBytes);
  }

  void end(std::exception_ptr why) {
    const std::lock_guard lock{mutex};
    error = std::move(why);
    ended = true;
    changed.notify_all();
  }

  bool next_block() {
    std::unique_lock lock{mutex};
    changed.wait(lock, [this] { return ended || !blocks.empty(); });
    if (blocks.empty()) {
      if (error) std::rethrow_exception(error);
      return false;
    }
    reading = std::move(blocks.front());
    at = 0;
    blocks.pop_front();
    changed.notify_all();
    return true;
  }
};

LayerTar::LayerTar(const Store& store, const Digest& blob,
                   std::function<void(std::uint64_t)> advance)
    : state_(std::make_unique<State>()) {
  state_->thread = std::thread{[state = state_.get(), &store, blob, advance = std::move(advance)] {
    try {
      const auto source = store.open(blob);
      ReadCountingSource counted{*source, advance};
      FunctionSink sink{[state](ByteView data) { state->push(data); }};
      decompress(counted, sink);
      if (!state->filling.empty()) state->hand_over();
      state->end(nullptr);
    } catch (const Abandoned&) {
      state->end(nullptr);
    } catch (...) {
      state->end(std::current_exception());
    }
  }};
}

LayerTar::~LayerTar() {
  {
    const std::lock_guard lock{state_->mutex};
    state_->abandoned = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
}

std::size_t LayerTar::read(ByteSpan out) {
  if (out.empty()) return 0;
  if (state_->at == state_->reading.size() && !state_->next_block()) return 0;
  const std::size_t count = std::min(out.size(), state_->reading.size() - state_->at);
  std::memcpy(out.data(), state_->reading.data() + state_->at, count);
  state_->at += count;
  return count;
}

Digest LayerTar::finish() {
  while (state_->next_block()) {
  }
  return state_->hash.finish();
}

void read_layer(const Store& store, const Layer& layer,
                const std::function<void(std::uint64_t)>& advance,
                const std::function<void(const TarEntry&, Source& data)>& take) {
  LayerTar tar{store, layer.blob.digest, advance};
  read_tar(tar, take);
  const Digest digest = tar.finish();
  if (digest == layer.diff_id) return;
  throw failure("damaged", "the layer `{}` does not hold what its image says",
                layer.blob.digest.str())
      .because(fmt::format("expected a tar with digest `{}`, found `{}`", layer.diff_id.str(),
                           digest.str()))
      .hint("run `mlenv store verify --repair`, then build or pull again");
}

}  // namespace mlenv
