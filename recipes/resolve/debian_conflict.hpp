#pragma once
// Why there is no set of Debian packages, in plain words.
#include <string>
#include <string_view>
#include <vector>

#include "recipes/resolve/conflict.hpp"
#include "recipes/resolve/solv.hpp"

namespace mlenv {

/// A chain from the packages asked for to what stands in the way.
std::vector<std::string> obstacle_facts(const solv::Pool& pool,
                                        const std::vector<solv::Obstacle>& obstacles,
                                        const std::vector<solv::PackageId>& asked);

/// Names of packages within two edits of `name`, nearest first, at most three.
std::vector<std::string> near_package_names(const solv::Pool& pool, std::string_view name);

}  // namespace mlenv
