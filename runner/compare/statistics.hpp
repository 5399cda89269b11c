#pragma once
// Medians with distribution-free confidence intervals, and what may be said of two of them.
//
// The interval is made of two order statistics: of n independent values in order the k-th and the
// (n+1-k)-th hold the median between them with probability 1 - 2 P(Binomial(n, 1/2) < k), whatever
// the distribution (J.-Y. Le Boudec, Performance Evaluation of Computer and Communication Systems,
// EPFL Press 2010, section 2.2; recommended for such figures by T. Hoefler and R. Belli, Scientific
// Benchmarking of Parallel Computing Systems, SC 2015). It needs six values for 95 %; of fewer it
// is all of their range, and its level says what that is worth. No value is ever left out.
#include <cstdint>
#include <string_view>
#include <vector>

namespace mlenv::compare {

/// The level that is aimed at.
inline constexpr double kLevel = 0.95;
/// Below this one nothing is claimed: four values or fewer.
inline constexpr double kLeastLevel = 0.90;

struct Summary {
  double median = 0;
  double low = 0;
  double high = 0;
  double level = 0;         ///< of confidence that the true median is between the two
  std::uint64_t count = 0;  ///< of values
  friend bool operator==(const Summary&, const Summary&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("median", self.median);
    visit("low", self.low);
    visit("high", self.high);
    visit("level", self.level);
    visit("count", self.count);
  }
};

/// Of at least one value.
Summary summary_of(std::vector<double> values);

enum class Better { lower, higher, neither };
enum class Relation { better, worse, overlap, too_few };

/// Of `of` to `base`. `overlap` where the intervals touch: nothing is said then. `too_few` where
/// one of them has less than kLeastLevel. Of what has no better direction `overlap`.
Relation relate(const Summary& of, const Summary& base, Better better);

std::string_view name_of(Better better);
std::string_view name_of(Relation relation);

}  // namespace mlenv::compare
