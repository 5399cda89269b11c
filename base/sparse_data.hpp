#pragma once
// Content of which long runs are holes: zeros that an archive does not hold.
#include "base/bytes.hpp"

namespace mlenv {

/// `read` gives the zeros, too. Who knows what to do with a hole asks for it first.
class SparseData : public Source {
 public:
  /// Whether any is known of.
  virtual bool has_holes() const = 0;
  /// Passes over a hole that comes next, and says how long it was; 0: what comes next is to be
  /// read.
  virtual std::uint64_t skip_hole() = 0;
};

}  // namespace mlenv
