#pragma once
// What nodes need to fetch an image's layers from a registry by themselves: an address, and a token
// that is good for pulling from that repository and for nothing else. The person's login never
// leaves this machine.
//
// It is asked for by a program of its own, `mlenv registry-grant`: a token server may take its
// time, a credential helper may, too, and a controller that is mlenv-node (in an allocation of
// Slurm's) cannot speak TLS at all.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/process.hpp"

namespace mlenv::job {

/// A registry from which nodes fetch an image.
struct PullFrom {
  std::string repository;  ///< `HOST[:PORT]/REPOSITORY`; empty: none
  bool plain_http = false;
  std::string program{};  ///< the mlenv that was told of it; asked for tokens, where it is there
  /// Of the reference, for messages.
  std::string host() const { return repository.substr(0, repository.find('/')); }
  friend bool operator==(const PullFrom&, const PullFrom&) = default;
};

struct RegistryGrant {
  std::string blobs;          ///< URL of a blob, without its digest
  std::string authorization;  ///< secret; empty: nothing is asked for
  bool any_certificate = false;
  friend bool operator==(const RegistryGrant&, const RegistryGrant&) = default;
};

std::string render_registry_grant(const RegistryGrant& grant);
/// Throws `bad-json`.
RegistryGrant parse_registry_grant(std::string_view text);

/// Whom the tokens come from. Nothing here waits.
struct GrantSource {
  std::function<void()> ask;
  /// Once, for what was asked; nullopt: not yet. Throws why there is none.
  std::function<std::optional<RegistryGrant>()> next;
};

/// By the mlenv of this installation (`from.program`, the running one, or one on PATH), for the
/// image of this manifest digest; where there is none, `ask` throws `cannot-start`. Of no registry
/// it is empty.
GrantSource grants_for(const PullFrom& from, const std::string& digest);
/// By that command: a grant on standard output, or an error as `--json` has it on standard error.
GrantSource grants_by(std::vector<std::string> command);

}  // namespace mlenv::job
