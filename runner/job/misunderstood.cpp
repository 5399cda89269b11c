#include "runner/job/misunderstood.hpp"

#include <utility>

namespace mlenv::job {

Error misunderstood(std::string why) {
  return failure("bad-stream", "the two ends of a node's link misunderstood each other")
      .because(std::move(why));
}

}  // namespace mlenv::job
