#pragma once
// Words of `--matrix`: which parameters there are, which values each takes, and so which
// variations.
//
//     lr=0.1,0.01          two values
//     seed=1..5            a range of whole numbers, both ends in it; `1..9..2` in steps
//     flags="a,b",c        a value in double quotes as it stands; `""` in it is one quote
//     @runs.csv            a file: names in its first line, values of one variation in each other
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlenv::matrix {

/// So many variations a matrix may have.
inline constexpr std::size_t kMostVariations = 10'000;

/// Parameters that vary together: one of `--matrix`, or a file of several.
struct Axis {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  ///< a value for each name
};

/// Several with nothing else between them, as a product: the last one varies fastest. Throws
/// `bad-matrix` (usage), in which each mistake has its place: a malformed word or file, a name that
/// is no variable's, is ours or was given before, a value given twice, an empty range, more
/// variations than may be.
std::vector<Axis> parse_matrix(const std::vector<std::string>& words);

/// Of all axes, in their order.
std::vector<std::string> names_of(const std::vector<Axis>& axes);
std::size_t count_of(const std::vector<Axis>& axes);

struct Value {
  std::string name;
  std::string text;
  friend bool operator==(const Value&, const Value&) = default;
};
/// The values of one variation, from 0.
std::vector<Value> values_of(const std::vector<Axis>& axes, std::size_t variation);

}  // namespace mlenv::matrix
