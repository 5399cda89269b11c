#pragma once
// What the store remembers of builds of wheels, so that the same source, base and tools are built
// once, whatever became of the lock that they were built for (docs/store.md, "Wheels built once").
//
// A hook of a build is taken for a function of: the source (digest, folder of the project, what git
// said of it), the base (platform, Debian packages, interpreter, time), the wheels of its
// environment, the recipe's variables and config settings for it, the hooks themselves and the
// environment that all builds have. One with the network is so for a day.
#include <optional>
#include <string>
#include <vector>

#include "builder/build_settings.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// What a source says without being run.
struct StatedSource {
  std::vector<std::string> requirements;
  std::uint64_t size_bytes = 0;  ///< of its archive; 0 for a tree
};

class BuildMemory {
 public:
  /// All outlive it. `hooks`: what runs them, and how.
  BuildMemory(Store& store, const LockedSource& source, const Lock& base,
              const BuildSettings& settings, std::string hooks);

  std::optional<StatedSource> stated() const;
  void keep_stated(const StatedSource& stated);

  /// What the build asked for beyond that with these wheels in its environment.
  std::optional<std::vector<std::string>> asked(const std::vector<LockedWheel>& tools) const;
  void keep_asked(const std::vector<LockedWheel>& tools, const std::vector<std::string>& more);

  /// What they built, as far as the store still has it.
  std::optional<LockedWheel> wheel(const std::vector<LockedWheel>& tools) const;
  void keep_wheel(const std::vector<LockedWheel>& tools, const LockedWheel& wheel);

 private:
  Digest key(std::string_view kind, const std::vector<LockedWheel>& tools) const;
  Digest stated_key() const;

  Store& store_;
  const LockedSource& source_;
  const Lock& base_;
  const BuildSettings& settings_;
  std::string hooks_;
};

}  // namespace mlenv
