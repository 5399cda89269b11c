#include "runner/compare/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace mlenv::compare {
namespace {

/// lgamma(3) sets a variable that all threads share.
double log_gamma(double of) {
  int sign = 0;
  return ::lgamma_r(of, &sign);
}

/// P(Binomial(n, 1/2) = k). By logarithms: 2^-n alone is nothing from n = 1075 on.
double exactly(std::size_t n, std::size_t k) {
  const auto count = static_cast<double>(n);
  const auto chosen = static_cast<double>(k);
  return std::exp(log_gamma(count + 1) - log_gamma(chosen + 1) - log_gamma(count - chosen + 1) -
                  count * std::log(2.0));
}

}  // namespace

Summary summary_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const std::size_t middle = n / 2;
  Summary summary;
  summary.count = n;
  summary.median = n % 2 == 1 ? values.at(middle) : (values.at(middle - 1) + values.at(middle)) / 2;
  std::size_t k = 1;
  double below = exactly(n, 0);  // P(Binomial(n, 1/2) < k)
  // The narrowest that still has the level.
  while (2 * (k + 1) <= n) {
    const double next = below + exactly(n, k);
    if (1 - 2 * next < kLevel) break;
    below = next;
    ++k;
  }
  summary.low = values.at(k - 1);
  summary.high = values.at(n - k);
  summary.level = std::max(0.0, 1 - 2 * below);
  return summary;
}

Relation relate(const Summary& of, const Summary& base, Better better) {
  if (better == Better::neither) return Relation::overlap;
  const bool below_it = of.high < base.low;
  const bool above_it = of.low > base.high;
  if (!below_it && !above_it) return Relation::overlap;
  if (std::min(of.level, base.level) < kLeastLevel) return Relation::too_few;
  return below_it == (better == Better::lower) ? Relation::better : Relation::worse;
}

std::string_view name_of(Better better) {
  if (better == Better::neither) return "neither";
  return better == Better::lower ? "lower" : "higher";
}

std::string_view name_of(Relation relation) {
  if (relation == Relation::better) return "better";
  if (relation == Relation::worse) return "worse";
  return relation == Relation::overlap ? "overlap" : "too-few";
}

}  // namespace mlenv::compare
