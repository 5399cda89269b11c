#pragma once
// An index (manifest list) holds an image for each of several platforms: which one is taken.
#include <string>
#include <string_view>

#include "base/digest.hpp"

namespace mlenv {

/// `linux/amd64`
std::string machine_platform();

/// Digest of the manifest for `platform` (empty: this machine's) in an index, the first where
/// several fit. Variants that only some machines have (`linux/amd64/v3`) are not chosen, so that
/// the choice is the same on all of them. Throws `not-found` with the platforms that there are,
/// `bad-image`; `what` is the index's name in messages.
Digest choose_platform(const std::string& index, std::string_view what, std::string_view platform);

/// By its media type; where that says nothing, by its content.
bool is_index(const std::string& media_type, const std::string& bytes);

}  // namespace mlenv
