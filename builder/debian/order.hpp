#pragma once
// The order in which packages are unpacked and configured: what a package depends on comes first,
// Essential packages and theirs before all others. A function of the set alone.
#include <cstddef>
#include <vector>

#include "builder/debian/package.hpp"

namespace mlenv::debian {

struct Order {
  std::vector<std::size_t> essential;  ///< indexes into the packages
  std::vector<std::size_t> rest;
  std::vector<std::size_t> all() const;
};

/// Dependencies that nothing in the set satisfies are passed over; circles are cut at the first
/// package by name.
Order order_of(const std::vector<Package>& packages);

}  // namespace mlenv::debian
