#include "runner/compare/first_starts.hpp"

namespace mlenv::compare {

void FirstStarts::add(const std::string& row, Cell& cell, double value, bool of_first_start) {
  const bool was_alone = alone_.erase({row, cell.side}) > 0;
  if (was_alone) cell.samples.clear();
  if (of_first_start) alone_.emplace(row, cell.side);
  cell.samples.push_back({value, 0});
}

bool FirstStarts::are_all_of(const std::string& row, const Cell& cell) const {
  return alone_.contains({row, cell.side});
}

}  // namespace mlenv::compare
