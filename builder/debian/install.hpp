#pragma once
// Debian packages put onto a system that has a dpkg of its own: what apt would have that dpkg do,
// and what is left of it in the end.
#include <string>
#include <string_view>
#include <vector>

#include "builder/debian/package.hpp"
#include "builder/run/layer_stack.hpp"

namespace mlenv::debian {

/// A shell script: `dpkg --unpack` of `files[i]` (absolute within the image) for `packages[i]`, and
/// `dpkg --configure`, in the order of their dependencies. What a package pre-depends on is
/// configured before it is unpacked; triggers run once, at the end. Settings files that the image
/// has changed stay as they are. A function of the packages alone.
std::string install_script(const std::vector<Package>& packages,
                           const std::vector<std::string>& files);

/// Throws `base-failed` for a package that dpkg's status file does not call installed; those that
/// are removed, their settings left, do not matter.
void require_installed(std::string_view status);

/// Takes out of `upper` what belongs to one machine or moment, as `normalise` does; what the image
/// below has of that shows through again: its machine-id, its logs.
void normalise_changes(const fs::path& upper, LayerStack& below);

}  // namespace mlenv::debian
