#pragma once
// How this machine's images are to be fetched: mirrors of registries, registries that are blocked
// or without good certificates, and folders of certificates (docs/registry.md, "Mirrors", "TLS").
// Values; whoever reads the machine's files makes them.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/http.hpp"
#include "images/reference.hpp"

namespace mlenv {

/// Takes the place of a rule's prefix in a reference.
struct RegistryMirror {
  enum class Use { all, digests, tags };
  std::string location;      ///< `host[:port][/path]`
  bool insecure = false;     ///< any certificate is taken, plain HTTP where no TLS is spoken
  bool plain_http = false;   ///< no TLS is tried
  Use use = Use::all;        ///< which references it is asked for
  bool skip_verify = false;  ///< any certificate is taken
  friend bool operator==(const RegistryMirror&, const RegistryMirror&) = default;
};

/// What holds for the images below a prefix.
struct RegistryRule {
  std::string prefix;    ///< `host[:port][/path]`; `*.host`: all hosts below that one
  std::string location;  ///< where they are pulled from in place of the prefix; empty: there
  // Of `location`, or where there is none of the place itself:
  bool insecure = false;
  bool plain_http = false;
  bool blocked = false;
  std::vector<RegistryMirror> mirrors;
  std::string said_in;  ///< a file, for messages
  bool skip_verify = false;
  friend bool operator==(const RegistryRule&, const RegistryRule&) = default;
};

struct RegistryHosts {
  /// Lists of rules, each with its own owner; in each the longest prefix that fits counts alone,
  /// and the mirrors of an earlier list are asked before those of a later one.
  std::vector<std::vector<RegistryRule>> rules;
  /// Folders with one of each `HOST[:PORT]`; the first that has it counts alone.
  std::vector<fs::path> certificates;
};

struct RegistryPlace {
  Reference where;
  bool insecure = false;
  bool plain_http = false;
  bool mirror = false;  ///< not what the reference says itself
  bool skip_verify = false;
  friend bool operator==(const RegistryPlace& a, const RegistryPlace& b) {
    return a.where.str() == b.where.str() && a.insecure == b.insecure &&
           a.skip_verify == b.skip_verify && a.plain_http == b.plain_http && a.mirror == b.mirror;
  }
};

/// Where to pull from, in the order to be asked; the registry itself comes last. Throws
/// `registry-blocked`, and `config-invalid` (usage) where a location makes no reference.
std::vector<RegistryPlace> pull_places(const RegistryHosts& hosts, const Reference& from);

/// Where to push to, which is always what the reference says. Throws as above.
RegistryPlace push_place(const RegistryHosts& hosts, const Reference& to);

/// What the folder of the place that `url` (https) names holds: `*.crt` are authorities,
/// `NAME.cert` and `NAME.key` what is shown to the server. Nothing where there is no folder. Throws
/// `config-invalid` (usage) for one half of a pair.
HostTls tls_of(std::span<const fs::path> folders, std::string_view url);

}  // namespace mlenv
