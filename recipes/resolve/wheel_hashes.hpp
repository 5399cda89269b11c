#pragma once
// Wheels held against the hashes that a recipe's `requirements` promise.
#include <vector>

#include "recipes/requirement_lists.hpp"
#include "recipes/resolve/pylock.hpp"
#include "recipes/resolve/source_release.hpp"
#include "recipes/resolve/wheel_tags.hpp"

namespace mlenv {

/// Drops wheels whose digest is not among those that the files promise of their release. Throws
/// `hash-mismatch` when none is left of those that fit the image, and `no-hash` for a package of
/// which nothing is promised where `--require-hashes` asks for it.
void keep_promised_wheels(std::vector<PylockPackage>& packages, const RequirementLists& listed,
                          const WheelTags& tags);

/// The same for a source release, before it is built: where hashes of it are promised, its own must
/// be among them (`hash-mismatch`), and where all must have some, so must it (`no-hash`).
void require_promised(const SourceRelease& source, const RequirementLists& listed);

}  // namespace mlenv
