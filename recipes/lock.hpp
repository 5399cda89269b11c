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
#include "recipes/base_image.hpp"
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

/// By its normalised name; nullptr: there is none.
const LockedWheel* find_wheel(const std::vector<LockedWheel>& wheels, std::string_view name);

/// What one of the lock's wheels was built from, and with what: a source release of an index, or
/// what the recipe names by its address (package_address.hpp).
struct LockedSource {
  std::string name;  ///< of the wheel, normalised
  std::string version;
  std::string file;  ///< `docopt-0.6.2.tar.gz`, or a wheel; empty: a tree
  std::uint64_t size_bytes = 0;
  Digest digest;                        ///< of the file or tree (source_tree.hpp)
  std::vector<std::string> built_with;  ///< files of Lock::build_wheels, sorted
  // Of those that the recipe names, one of the first three:
  std::string git{};           ///< URL of the repository
  std::string path{};          ///< of a folder or file, from the recipe's folder
  std::string url{};           ///< of a file
  std::string reference{};     ///< of `git`: as the recipe has it; empty: the default branch
  std::string commit{};        ///< of `git`: in full
  std::string subdirectory{};  ///< in which it is built; empty: the top
  /// Of `git`: what its build is told of tags before the commit, `v1.2-3-g0123456`; empty: nothing.
  std::string describe{};
  /// `docopt-0.6.2.tar.gz`, `./libs/x`, `https://host/x at 0123456789ab`: for messages.
  std::string shown() const;
  /// Whether the recipe names it, so that no index has it.
  bool is_direct() const { return !git.empty() || !path.empty() || !url.empty(); }
  friend bool operator==(const LockedSource&, const LockedSource&) = default;
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

/// Where an interpreter that the recipe brings along lies in the image.
inline constexpr std::string_view kOwnPython = "/opt/python";

/// The CPython that the recipe brings in place of the base's.
struct LockedPython {
  std::string version;  ///< `3.12.8`
  std::string file;     ///< the archive's name
  std::uint64_t size_bytes = 0;
  Digest digest;
  friend bool operator==(const LockedPython&, const LockedPython&) = default;
};

/// The resolved part of a recipe, as it was when locked: `--locked` compares it.
struct Request {
  std::string base;
  std::string python;                 ///< empty: not given
  std::string interpreter{};          ///< SHA-256 of the recipe's own Python; empty: the base's
  std::string framework;              ///< empty: not given
  std::string cuda;                   ///< empty: not given
  std::vector<std::string> packages;  ///< as written, sorted, unique
  /// Of the files in `requirements`, as RequirementLists has them; each sorted, unique.
  std::vector<std::string> requirements{};
  std::vector<std::string> constraints{};  ///< also `Python >=3.10`
  std::optional<Digest> hashes{};          ///< of those that they promise; nullopt: none
  std::vector<std::string> system;         ///< sorted, unique
  std::string driver{};                    ///< `>=580`; empty: not given
  std::vector<std::string> gpus{};         ///< sorted, unique
  std::vector<std::string> libraries{};    ///< `cudnn 9.*`, `nvcc`; sorted
  Steering steering{};                     ///< as `locked_steering` has it
  /// Whether it asks for what only locks from `Lock::kWholeRecipe` on have words for.
  bool demands_of_cuda() const { return !driver.empty() || !gpus.empty() || !libraries.empty(); }
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
  std::string workdir;  ///< empty: that of the image which is the base
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
  // Of locks whose recipe asks for a driver, GPUs or libraries, else empty:
  std::string cudnn{};  ///< version of the wheel; empty: none is there
  std::string nccl{};
  /// What the framework's wheels hold code for: `sm_75`; empty: not known before they are read.
  std::vector<std::string> architectures{};
  friend bool operator==(const LockedCuda&, const LockedCuda&) = default;
};

struct Lock {
  static constexpr int kVersion = 1;
  static constexpr int kRevision = 3;          ///< the newest that this mlenv knows
  static constexpr int kChecksumRevision = 1;  ///< from this one on a lock carries its own digest
  /// From this one on: driver, GPUs and libraries, an image as base, files of
  /// requirements and packages built from source, `run` and `data`, a Python of the recipe's own,
  /// Debian packages elsewhere than below `pool/`.
  static constexpr int kWholeRecipe = 2;
  static constexpr int kSteering = 3;  ///< from this one on: `request.steering`
  /// Of the file it was read from; larger than kRevision: it holds things that this mlenv does not
  /// know, so it may be used but not rewritten (`resolve` refuses). A new lock has the lowest that
  /// has words for all it holds (`least_revision`).
  int revision = kChecksumRevision;
  std::string platform = "linux/amd64";
  std::int64_t epoch = 0;  ///< every time stamp in the image, seconds
  Request request;
  Settings settings;
  std::string distribution;        ///< `debian`; empty: an image as base whose files do not tell
  std::string suite;               ///< `bookworm`
  std::string python;              ///< full version of the interpreter, `3.11.2`; empty: none
  std::optional<LockedBase> base;  ///< nullopt: made from `debs`, else they come on top of it
  std::optional<LockedCuda> cuda;
  std::vector<LockedDeb> debs;              ///< sorted by name, architecture
  std::vector<LockedWheel> wheels;          ///< sorted by name
  std::vector<LockedSource> sources;        ///< sorted by name
  std::vector<LockedWheel> build_wheels;    ///< what built those, not part of the image; by file
  std::optional<LockedPython> interpreter;  ///< nullopt: the base's

  /// nullptr: the wheel is its index's own.
  const LockedSource* source_of(const LockedWheel& wheel) const;
  /// `3.11`
  std::string python_minor() const;
  /// Where the interpreter is in the image: `/usr/bin/python3.11`, `/opt/python/bin/python3.12`.
  std::string python_program() const;
  friend bool operator==(const Lock&, const Lock&) = default;
};

/// The lowest revision that has words for all that the lock holds, whatever its `revision` says: a
/// lock without new things stays byte for byte what it was.
int least_revision(const Lock& lock);

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

inline constexpr std::string_view kLockEnd = ".lock";
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
  /// What the image needs of a host, by its own files: mlenv.image-facts/1, a fact a line
  /// (built_set.hpp); empty: not recorded.
  std::string facts = {};
  friend bool operator==(const Built&, const Built&) = default;
};
std::string render_built(const Built& built);
Built parse_built(std::string_view text, const fs::path& shown_path);

/// Readable differences, one line each (`torch 2.14.1 → 2.15.0`, `+ sympy 1.14`, `- six 1.16`);
/// empty when equal.
std::vector<std::string> lock_differences(const Lock& from, const Lock& to);

}  // namespace mlenv
