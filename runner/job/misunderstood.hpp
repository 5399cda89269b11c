#pragma once
// What either end of a node's link says of what it cannot make sense of.
#include <string>

#include "base/error.hpp"

namespace mlenv::job {

/// `bad-stream`, for this reason.
Error misunderstood(std::string why);

}  // namespace mlenv::job
