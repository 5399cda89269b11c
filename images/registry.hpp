#pragma once
// Moves images between a registry (OCI distribution-spec 1.1) and the store.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/progress.hpp"
#include "images/oci.hpp"
#include "images/reference.hpp"
#include "images/registry_hosts.hpp"
#include "images/store.hpp"

namespace mlenv {

struct RegistryOptions {
  /// Plain HTTP instead of TLS. Loopback hosts use plain HTTP when nothing answers TLS there; other
  /// hosts never do unasked.
  bool plain_http = false;
  /// Any certificate is taken, and plain HTTP where TLS is not spoken: as this machine is set up
  /// for a registry (RegistryRule), never unasked.
  bool insecure = false;
  bool skip_verify = false;  ///< Any certificate is taken, no more.
  unsigned uploads = 4;      ///< blobs in flight
  fs::path docker_config;    ///< config.json with `auths`; empty: $DOCKER_CONFIG or ~/.docker
  bool only_pull = false;    ///< tokens are for pulling and nothing else, whatever is asked for
  std::string platform;      ///< chosen from an index, `linux/arm64`; empty: this machine's
  RegistryHosts hosts;       ///< mirrors, certificates
};

/// One registry, by the name that `where` has, whatever `options.hosts` says of mirrors.
/// Errors: `denied` (with what to do about the login), `not-found`, `digest-mismatch`, `registry`
/// (its own words), and those of Http. From any thread.
class Registry {
 public:
  /// Throws `bad-reference` (usage) when `where` names no host.
  Registry(Http& http, const Reference& where, RegistryOptions options = {});
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Which login the last request went with, or why with none; a sentence for messages.
  std::string login_told() const;
  /// `not-found`, for whoever got no manifest of that name.
  Error no_image(const Reference& from) const;
  bool has_blob(const Digest& digest);
  /// POST, then PATCH with the whole body from `open(offset)`, then PUT (small blobs: POST and
  /// PUT). After a break it goes on where the registry says it is, else with a new session (3 at
  /// most). The digest is checked by the registry. `advance` counts no byte twice (may be null).
  void upload_blob(const Descriptor& blob,
                   const std::function<std::unique_ptr<Source>(std::uint64_t offset)>& open,
                   const std::function<void(std::uint64_t)>& advance);
  /// Verified against the digest while it passes.
  void download_blob(const Descriptor& blob, int file,
                     const std::function<void(std::uint64_t)>& advance);
  struct Manifest {
    std::string bytes;
    std::string media_type;
    Digest digest;
  };
  /// By tag or digest; an index is resolved for the options' platform. Verified
  /// against the digest asked for, else the one the registry tells. nullopt: 404.
  std::optional<Manifest> get_manifest(const std::string& name);
  /// The same, and of an index the index itself.
  std::optional<Manifest> get_unresolved(const std::string& name);
  bool has_manifest(const Digest& digest);
  /// What others need to fetch blobs of this repository by themselves.
  struct BlobAccess {
    std::string url;            ///< of a blob, without its digest
    std::string authorization;  ///< secret; empty: nothing is asked for
    bool plain_http = false;
    bool any_certificate = false;
  };
  /// Asks for that manifest first, so that the registry says what it wants. Throws `not-found`
  /// where it lacks it, `password-only` where the login's password itself would have to be sent.
  BlobAccess blob_access(const Digest& manifest);
  void put_manifest(const std::string& name, std::string_view bytes, std::string_view media_type);

  struct State;  ///< private to images/registry*.cpp

 private:
  class Upload;
  std::unique_ptr<State> state_;
};

/// Uploads layers as they become known, so that pushing overlaps building. Errors surface in
/// `finish`. Layers already in the registry (HEAD) are not read.
class Pusher {
 public:
  Pusher(Store& store, Registry& registry, Progress& progress, unsigned uploads = 4);
  /// Waits for what is in flight, uploads nothing more.
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;
  /// Returns at once; the layer's bytes must be in the store. Twice the same is fine.
  void add(const Layer& layer);
  /// Adds what is missing, waits for all, then config, then the manifest under `reference`'s tag.
  /// Of an index: each image's config and manifest (by digest), its artifacts, then the index under
  /// the tag. Throws `absent` where that is not all in the store.
  struct Pushed {
    Digest digest;
    std::size_t uploaded = 0;
    std::size_t present = 0;
    std::uint64_t uploaded_bytes = 0;
  };
  Pushed finish(const ImageSet& image, const Reference& reference);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Pusher::Pushed push(Store& store, const ImageSet& image, Http& http, const Reference& to,
                    const RegistryOptions& options, Progress& progress);

/// What `options` are for a push to `to`, which goes nowhere else: as its `hosts` say. Throws
/// `registry-blocked`.
RegistryOptions push_options(RegistryOptions options, const Reference& to);

/// One layer of an image that the registry has, brought into the store; nullopt where the registry
/// has no such image, the image no such layer, or they cannot be read.
std::optional<Layer> pull_layer(Store& store, Registry& registry, const Digest& manifest,
                                const Digest& blob, Progress& progress);

/// Fetches manifest, config and the layers that the store lacks, in parallel, each verified, from
/// `options.hosts`' mirrors where they have them; nothing is tagged. Throws `not-found` when the
/// reference does not exist, or not for the platform, `registry-blocked`, and what the registry
/// itself threw last.
Image fetch_image(Store& store, Http& http, const Reference& from, const RegistryOptions& options,
                  Progress& progress);
/// The same, then tags.
Image pull(Store& store, Http& http, const Reference& from, const RegistryOptions& options,
           Progress& progress);
/// Fetches all images of an index, its artifacts and the index itself, then tags it; what is no
/// index as `pull` does, whatever its platform. Throws `not-found` for an index without images.
ImageSet pull_all(Store& store, Http& http, const Reference& from, const RegistryOptions& options,
                  Progress& progress);

}  // namespace mlenv
