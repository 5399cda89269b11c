#pragma once
// What measured time costs where it is rented, and when owning is cheaper.
#include <map>
#include <optional>
#include <string>

#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

/// `vm=0.35`: EUR per hour of a side. Throws `usage`.
std::map<std::string, double> parse_prices(const std::vector<std::string>& words);

/// Adds rows for the sides that have a price (SideResult::price_per_hour) and a time: EUR per
/// million training steps and per thousand runs of the person's command. With `own_price` (EUR)
/// also the steps, or runs, for which renting has cost as much as buying. Earlier such rows go.
void add_costs(Comparison& comparison, std::optional<double> own_price);

}  // namespace mlenv::compare
