#pragma once
// recipe.lock: every byte that comes from outside, by name, version, size and sha256; never a host.
// Format: docs/lock.md (TOML, sorted, line by line diffable).
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {

struct LockedWheel {
  std::string name;  ///< normalised (PEP 503)
  std::string version;
  std::string file;  ///< wheel filename
  std::uint64_t size_bytes = 0;
  Digest digest;
  bool requested = false;  ///< the recipe names it (PEP 376 REQUESTED)
  friend bool operator==(const LockedWheel&, const LockedWheel&) = default;
};

struct LockedDeb {
  std::string name;
  std::string version;
  std::string architecture;  ///< `amd64` or `all`
  std::string path;          ///< below the archive's root: `pool/main/…`
  std::uint64_t size_bytes = 0;
  Digest digest;
  friend bool operator==(const LockedDeb&, const LockedDeb&) = default;
};

/// The resolved part of a recipe, as it was when locked: `--locked` compares it.
struct Request {
  std::string base;
  std::string python;                 ///< empty: not given
  std::string framework;              ///< empty: not given
  std::string cuda;                   ///< empty: not given
  std::vector<std::string> packages;  ///< as written, sorted, unique
  std::vector<std::string> system;    ///< sorted, unique
  friend bool operator==(const Request&, const Request&) = default;
};

/// A data set that runs of the image are given.
struct LockedData {
  std::string name;
  std::string to;      ///< in the container
  std::string digest;  ///< `sha256:…`; empty only in what is read from a recipe without one
  std::string stage;   ///< empty: none
  friend bool operator==(const LockedData&, const LockedData&) = default;
};

/// The rest of the recipe that shapes the image, and what its runs are given.
struct Settings {
  std::string name;
  std::map<std::string, std::string> env;
  std::string workdir;
  std::vector<std::string> command;
  bool bytecode = true;
  std::optional<Digest> sources;  ///< of the files that carry the recipe's own package sources
  std::vector<RunStep> run;       ///< in order; places are not kept
  std::vector<LockedData> data;   ///< sorted by name
  friend bool operator==(const Settings&, const Settings&) = default;
};

/// The CUDA release that the locked wheels carry.
struct LockedCuda {
  std::string release;     ///< `13.2`
  std::string min_driver;  ///< oldest Linux driver branch that runs it: `580`, `525.60.13`
  friend bool operator==(const LockedCuda&, const LockedCuda&) = default;
};

struct Lock {
  static constexpr int kVersion = 1;
  static constexpr int kRevision = 2;          ///< the newest that this mlenv knows
  static constexpr int kChecksumRevision = 1;  ///< from this one on a lock carries its own digest
  /// The lowest one that has words for all that the lock holds, or that of the file it was read
  /// from; larger than kRevision: it holds things that this mlenv does not
  /// know, so it may be used but not rewritten (`resolve` refuses).
  int revision = kChecksumRevision;
  std::string platform = "linux/amd64";
  std::int64_t epoch = 0;  ///< every time stamp in the image, seconds
  Request request;
  Settings settings;
  std::string distribution;  ///< `debian`
  std::string suite;         ///< `bookworm`
  std::string python;        ///< full version of the interpreter, `3.11.2`; empty: none
  std::optional<LockedCuda> cuda;
  std::vector<LockedDeb> debs;      ///< sorted by name, architecture
  std::vector<LockedWheel> wheels;  ///< sorted by name

  /// `3.11`
  std::string python_minor() const;
  friend bool operator==(const Lock&, const Lock&) = default;
};

/// The lowest revision that has words for these settings: 2 with `run` or `data`.
int revision_of(const Settings& settings);
Request request_of(const Recipe& recipe);
Settings settings_of(const Recipe& recipe);

/// Deterministic; ends in a newline.
std::string render_lock(const Lock& lock);
/// Throws `lock-invalid` (usage) with `file:line:col`: also for parts that contradict each other,
/// and for content that its `checksum` is not of. `lock-newer` when its version is newer than this
/// mlenv reads (both versions named).
Lock parse_lock(std::string_view text, const fs::path& shown_path);
/// Digest of `render_lock` without its `checksum` line, which holds it.
Digest lock_digest(const Lock& lock);

/// `dir/recipe.yaml` → `dir/recipe.lock`, `dir/recipe.built`.
fs::path lock_path(const fs::path& recipe);
fs::path built_path(const fs::path& recipe);

/// What a build yields, per platform: written beside the lock (docs/lock.md).
struct Built {
  std::string platform;
  Digest lock;                  ///< of the lock it was built from
  std::optional<Digest> files;  ///< of the project's files in it; nullopt for none
  int layer_format = 1;
  Digest image;                                        ///< manifest
  std::vector<std::pair<std::string, Digest>> layers;  ///< title, blob digest
  friend bool operator==(const Built&, const Built&) = default;
};
std::string render_built(const Built& built);
Built parse_built(std::string_view text, const fs::path& shown_path);

/// Readable differences, one line each (`torch 2.14.1 → 2.15.0`, `+ sympy 1.14`, `- six 1.16`);
/// empty when equal.
std::vector<std::string> lock_differences(const Lock& from, const Lock& to);

}  // namespace mlenv
