#pragma once
// Reading uv's answer: pylock.toml (PEP 751), as far as wheels from indexes go.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

struct PylockWheel {
  std::string file;
  std::string url;  ///< `file://…` for a wheel on this machine
  std::optional<Digest> digest;
  std::optional<std::uint64_t> size_bytes;
};

struct PylockSource {
  std::string file;
  std::string url;
  std::optional<Digest> digest;
  std::optional<std::uint64_t> size_bytes;
};

struct PylockPackage {
  std::string name;     ///< normalised
  std::string version;  ///< empty when the entry has none
  std::vector<PylockWheel> wheels;
  bool has_source = false;               ///< an sdist, a folder or a version-control address
  std::optional<PylockSource> source{};  ///< the sdist
  std::optional<std::string> yanked{};   ///< taken back by its makers: why; may be empty
};

using PylockPackages = std::vector<PylockPackage>;

/// nullptr: it is not among them.
const PylockPackage* find_pylock_package(const PylockPackages& packages, const std::string& name);

/// Throws `uv-failed` when it is not what PEP 751 says.
PylockPackages parse_pylock(std::string_view text, const fs::path& folder);

/// Enough of a pylock.toml for uv to prefer these versions.
std::string render_preferences(const std::vector<std::pair<std::string, std::string>>& versions);

}  // namespace mlenv
