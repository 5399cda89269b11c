#pragma once
// dpkg's own records (/var/lib/dpkg) of packages that are unpacked and not yet configured, as dpkg
// 1.21 would have left them.
#include <vector>

#include "builder/debian/package.hpp"
#include "builder/debian/tree.hpp"

namespace mlenv::debian {

/// Below the root: one folder for each package that has a preinst, named as its info files, with
/// all its control files.
inline constexpr const char* kPreinstFolder = "var/lib/dpkg/tmp.preinst";

/// Conffiles' digests are taken from the tree as it is.
void write_database(Tree& tree, const std::vector<Package>& packages);

}  // namespace mlenv::debian
