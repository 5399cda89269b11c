#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>

#include "base/error.hpp"
#include "base/pool.hpp"
#include "images/registry.hpp"

namespace mlenv {

struct Pusher::State {
  State(Store& from, Registry& to, Progress& shown, unsigned uploads)
      : store(from), registry(to), progress(shown), pool(std::max(1U, uploads)) {}

  /// In a thread of the pool. Parks what goes wrong; after that nothing more is begun.
  void send(const Layer& layer) noexcept;
  /// True when bytes were sent.
  bool upload(const Descriptor& blob, const std::string& name);
  /// Config and, under `name`, manifest.
  void put(const Image& image, const std::string& name);
  void put(const Artifact& artifact);
  void wait();

  Store& store;
  Registry& registry;
  Progress& progress;

  std::mutex mutex;
  std::condition_variable changed;
  std::set<Digest> added;
  std::size_t waiting = 0;
  std::exception_ptr failed;
  Pushed pushed{Digest::of(std::string_view{})};

  Pool pool;  // last, so that it ends first
};

bool Pusher::State::upload(const Descriptor& blob, const std::string& name) {
  if (registry.has_blob(blob.digest)) {
    Activity{progress, "push " + name, blob.size_bytes}.result("already there");
    return false;
  }
  Activity activity{progress, "push " + name, blob.size_bytes};
  registry.upload_blob(
      blob, [&](std::uint64_t offset) { return store.open(blob.digest, offset); },
      [&](std::uint64_t amount) { activity.advance(amount); });
  return true;
}

void Pusher::State::send(const Layer& layer) noexcept {
  bool sent = false;
  std::exception_ptr error;
  try {
    bool go = false;
    {
      const std::lock_guard lock{mutex};
      go = !failed;
    }
    if (go) {
      sent = while_doing(fmt::format("pushing layer `{}`", layer.shown_name()),
                         [&] { return upload(layer.blob, layer.shown_name()); });
    }
  } catch (...) {  // a thread's edge: `finish` rethrows it
    error = std::current_exception();
  }
  const std::lock_guard lock{mutex};
  if (error && !failed) failed = error;
  if (sent) {
    ++pushed.uploaded;
    pushed.uploaded_bytes += layer.blob.size_bytes;
  } else {
    ++pushed.present;
  }
  --waiting;
  changed.notify_all();
}

void Pusher::State::wait() {
  std::unique_lock lock{mutex};
  changed.wait(lock, [&] { return waiting == 0; });
  if (failed) std::rethrow_exception(failed);
}

Pusher::Pusher(Store& store, Registry& registry, Progress& progress, unsigned uploads)
    : state_(std::make_unique<State>(store, registry, progress, uploads)) {}
Pusher::~Pusher() = default;

void Pusher::add(const Layer& layer) {
  {
    const std::lock_guard lock{state_->mutex};
    if (!state_->added.insert(layer.blob.digest).second) return;
    ++state_->waiting;
  }
  state_->pool.submit([state = state_.get(), layer] { state->send(layer); });
}

void Pusher::State::put(const Image& image, const std::string& name) {
  const Descriptor& config = image.config_descriptor;
  if (!registry.has_blob(config.digest)) {
    registry.upload_blob(
        config,
        [&](std::uint64_t offset) {
          return std::make_unique<MemorySource>(as_bytes(image.config).subspan(offset));
        },
        nullptr);
    pushed.uploaded_bytes += config.size_bytes;
  }
  registry.put_manifest(name, image.manifest, image.manifest_descriptor.media_type);
}

void Pusher::State::put(const Artifact& artifact) {
  if (registry.has_manifest(artifact.digest())) return;
  for (const Descriptor& blob : artifact.blobs) {
    if (upload(blob, blob.digest.brief())) pushed.uploaded_bytes += blob.size_bytes;
  }
  registry.put_manifest(artifact.digest().str(), artifact.manifest, artifact.descriptor.media_type);
}

Pusher::Pushed Pusher::finish(const ImageSet& image, const Reference& reference) {
  if (reference.digest().value_or(image.digest()) != image.digest()) {
    throw usage_error("bad-reference", "`{}` names another image than the one pushed",
                      reference.str())
        .because(fmt::format("the image is {}", image.digest().str()));
  }
  image.require_whole();
  for (const Image& one : image.images) {
    for (const Layer& layer : one.layers) add(layer);
  }
  state_->wait();
  while_doing(fmt::format("pushing `{}`", reference.str()), [&] {
    const std::string name = reference.tag().empty() ? image.digest().str() : reference.tag();
    if (!image.index) return state_->put(image.images.front(), name);
    Registry& registry = state_->registry;
    for (const Image& one : image.images) {
      if (!registry.has_manifest(one.digest())) state_->put(one, one.digest().str());
    }
    for (const Artifact& one : image.artifacts) state_->put(one);
    registry.put_manifest(name, image.index->bytes, image.index->descriptor.media_type);
  });
  state_->pushed.digest = image.digest();
  return state_->pushed;
}

RegistryOptions push_options(RegistryOptions options, const Reference& to) {
  const RegistryPlace place = push_place(options.hosts, to);
  options.plain_http = options.plain_http || place.plain_http;
  options.insecure = place.insecure;
  options.skip_verify = place.skip_verify;
  return options;
}

// One more parameter than usual: it is Pusher and Registry in one call.
// NOLINTNEXTLINE(readability-function-size)
Pusher::Pushed push(Store& store, const ImageSet& image, Http& http, const Reference& to,
                    const RegistryOptions& options, Progress& progress) {
  Registry registry{http, to, push_options(options, to)};
  Pusher pusher{store, registry, progress, options.uploads};
  return pusher.finish(image, to);
}

}  // namespace mlenv
