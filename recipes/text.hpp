#pragma once
// Small questions about text that recipes and locks share.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace mlenv {

/// Whether it holds a control character other than those in `allowed`.
bool has_control(std::string_view text, std::string_view allowed = {});

/// Optimal string alignment distance: a swap of neighbours is one edit. `limit` + 1 when it is
/// larger than that.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

/// The candidate within edit distance 2 (a swap of neighbours counts one) that is nearest, the
/// first of several; empty when none is near. At most half of the shorter word may differ.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// ``did you mean `WORD`?``; empty without a word.
std::string did_you_mean(std::string_view word);
/// `; `, and that of the nearest candidate; empty when none is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

/// `1 wheel`, `2 wheels`: the word gains an `s` unless there is exactly one.
std::string counted(std::size_t count, std::string_view word);

/// A line that git's merge left in a file: `<<<<<<<`, `=======` or `>>>>>>>`.
struct MergeMarker {
  int line = 0;  ///< 1-based
  std::string_view text;
};
/// The first one; nullopt when there is none.
std::optional<MergeMarker> merge_marker(std::string_view text);

/// The first `most`, with commas between them, and ` and 2 more`.
std::string listed(const std::vector<std::string>& items, std::size_t most);
std::string join(const std::vector<std::string>& parts, std::string_view between);
bool all_digits(std::string_view text);
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
/// Whether `words` stand in it somewhere.
bool says(std::string_view text, std::string_view words);
bool is_among(std::span<const std::string_view> all, std::string_view one);

// Grammars.

/// Repository name: components of lower-case letters and digits, separated by `.`, `_`, `__` or
/// dashes, joined by `/` (distribution-spec, "Pulling manifests").
bool is_image_name(std::string_view text);
/// Portable environment variable name (POSIX.1-2017 8.1, lower case allowed).
bool is_env_name(std::string_view text);
/// Debian binary package name (Debian policy 5.6.1).
bool is_debian_name(std::string_view text);
/// Debian version (deb-version(7)).
bool is_debian_version(std::string_view text);
/// Normalised Python distribution name (PEP 503).
bool is_wheel_name(std::string_view text);
std::string normalise_wheel_name(std::string_view text);
/// Absolute, no `.`, `..` or empty part, no trailing `/` but for the root, no control character.
bool is_clean_absolute_path(std::string_view text);
/// The same for a path that stays below where it starts: relative.
bool is_clean_relative_path(std::string_view text);

}  // namespace mlenv
