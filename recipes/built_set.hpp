#pragma once
// What recipe.built holds: the record of each platform's last build. Of one platform the file is as
// `render_built` writes it. Format: docs/lock.md.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct BuiltSet {
  std::vector<Built> builds;  ///< sorted by platform, each once; in a file at least one
  /// Of all these images as one; nullopt: none was made of them.
  std::optional<Digest> index = std::nullopt;
  /// The file has a revision that is unknown here: it holds more than this, and is not rewritten.
  bool newer = false;

  /// nullptr: nothing was built for that.
  const Built* find(std::string_view platform) const;
  /// In place of the record of its platform. What is recorded of an index goes.
  void put(const Built& built);
  friend bool operator==(const BuiltSet&, const BuiltSet&) = default;
};
/// Deterministic; ends in a newline.
std::string render_builds(const BuiltSet& set);
/// Throws `built-invalid` (usage) with `file:line:col`, `lock-newer`.
BuiltSet parse_builds(std::string_view text, const fs::path& shown_path);

/// For Built::facts.
std::string facts_for_record(const ImageFacts& facts);
/// Those that are recorded; nullopt: none are, or of a version that is unknown here.
std::optional<ImageFacts> recorded_facts(const Built& built);

}  // namespace mlenv
