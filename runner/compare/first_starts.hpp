#pragma once
// Which figures are of a first start. It reads what later ones find in memory, so its samples count
// only as long as no other came: on that side and of that row, for a later start may fail on one
// side, give fewer rows, or find no time.
#include <set>
#include <string>
#include <utility>

#include "runner/compare/comparison.hpp"

namespace mlenv::compare {

class FirstStarts {
 public:
  /// Adds a sample of session 0, in the place of a first start's if there is one.
  void add(const std::string& row, Cell& cell, double value, bool of_first_start);
  /// Whether all that is there of it is of a first start.
  bool are_all_of(const std::string& row, const Cell& cell) const;

 private:
  std::set<std::pair<std::string, std::string>> alone_;  ///< row, side
};

}  // namespace mlenv::compare
