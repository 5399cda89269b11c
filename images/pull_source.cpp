#include "images/pull_source.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace mlenv {
namespace {

RegistryOptions options_for(const RegistryPlace& place, const RegistryOptions& given) {
  RegistryOptions options = given;
  // `--plain-http` is about the registry that was named.
  options.plain_http = place.plain_http || (given.plain_http && !place.mirror);
  options.insecure = place.insecure;
  options.skip_verify = place.skip_verify;
  return options;
}

/// As against this machine's disk.
bool blames_place(const Error& error) {
  for (const char* code : {"network", "certificate", "http-status", "not-found", "denied",
                           "registry", "digest-mismatch", "too-large", "credentials", "bad-image",
                           "bad-json", "timeout", "cannot-start"}) {
    if (error.code() == code) return true;
  }
  return false;
}

bool never_answers(const Error& error) {
  return error.code() == "network" || error.code() == "certificate" || error.code() == "denied";
}

}  // namespace

void fetch_blob(Store& store, Registry& registry, const Descriptor& blob, Activity& activity) {
  Store::Staged staged = store.stage();
  registry.download_blob(blob, staged.fd(),
                         [&](std::uint64_t amount) { activity.advance(amount); });
  staged.commit(blob.digest);
}

PullSource::Place::Place(Http& http, RegistryPlace place, const RegistryOptions& options)
    : from(std::move(place)), registry(http, from.where, options_for(from, options)) {}

PullSource::PullSource(Http& http, const Reference& from, const RegistryOptions& options) {
  for (RegistryPlace& place : pull_places(options.hosts, from)) {
    places_.emplace_back(http, std::move(place), options);
  }
}

void PullSource::pass_over(Place& place, const Error& error) {
  if (!blames_place(error)) throw;
  log::debug("the mirror `{}` is passed over: {}", place.from.where.str(), error.what());
  if (never_answers(error)) place.lost = true;
}

std::optional<Registry::Manifest> PullSource::get_manifest(const std::string& name) {
  return ask(name, &Registry::get_manifest);
}

std::optional<Registry::Manifest> PullSource::get_unresolved(const std::string& name) {
  return ask(name, &Registry::get_unresolved);
}

std::optional<Registry::Manifest> PullSource::ask(const std::string& name, Get get) {
  for (Place& place : places_) {
    if (&place == &places_.back()) return (place.registry.*get)(name);
    if (place.lost) continue;
    try {
      std::optional<Registry::Manifest> found = (place.registry.*get)(name);
      if (found) {
        log::debug("`{}` is what the mirror `{}` says it is: {}", name, place.from.where.str(),
                   found->digest.str());
        return found;
      }
      log::debug("the mirror `{}` has no `{}`", place.from.where.str(), name);
    } catch (const Error& error) {
      pass_over(place, error);
    }
  }
  return std::nullopt;
}

void PullSource::fetch_blob(Store& store, const Descriptor& blob, Activity& activity) {
  for (Place& place : places_) {
    if (&place == &places_.back()) {
      return mlenv::fetch_blob(store, place.registry, blob, activity);
    }
    if (place.lost) continue;
    try {
      return mlenv::fetch_blob(store, place.registry, blob, activity);
    } catch (const Error& error) {
      pass_over(place, error);
    }
  }
}

}  // namespace mlenv
