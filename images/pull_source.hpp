#pragma once
// Where an image is pulled from: the mirrors that this machine names for its registry, then the
// registry itself.
#include <atomic>
#include <list>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "images/registry.hpp"

namespace mlenv {

/// One blob into the store, verified while it passes.
void fetch_blob(Store& store, Registry& registry, const Descriptor& blob, Activity& activity);

/// Each question goes to one place after the other until one answers. What a mirror cannot do is
/// told to the debug log alone, and one that cannot be reached is not asked again; the registry's
/// own errors come out. From any thread.
class PullSource {
 public:
  /// Throws what `pull_places` throws.
  PullSource(Http& http, const Reference& from, const RegistryOptions& options);

  /// As Registry's: a mirror's word is taken for what a tag means.
  std::optional<Registry::Manifest> get_manifest(const std::string& name);
  std::optional<Registry::Manifest> get_unresolved(const std::string& name);
  Error no_image(const Reference& from) const { return places_.back().registry.no_image(from); }
  /// As `fetch_blob`: every byte is held against the digest, whoever gives it.
  void fetch_blob(Store& store, const Descriptor& blob, Activity& activity);

 private:
  struct Place {
    Place(Http& http, RegistryPlace place, const RegistryOptions& options);
    RegistryPlace from;
    Registry registry;
    std::atomic<bool> lost{false};
  };
  /// In a handler of a mirror's failure; goes on with it where it is none of the mirror's.
  static void pass_over(Place& place, const Error& error);
  using Get = std::optional<Registry::Manifest> (Registry::*)(const std::string&);
  std::optional<Registry::Manifest> ask(const std::string& name, Get get);

  std::list<Place> places_;
};

}  // namespace mlenv
