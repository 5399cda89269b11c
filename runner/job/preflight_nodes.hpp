#pragma once
// A preflight over the links of a job's nodes, once they are ready.
#include <functional>

#include "runner/job/drive_nodes.hpp"
#include "runner/job/preflight.hpp"

namespace mlenv::job {

/// `step` lets the nodes be heard for a moment; false: it is to end. What was found until then is
/// judged all the same. Throws as place_of does.
Preflight preflight_of(DrivenNodes& nodes, const Job& job, const std::function<bool()>& step);

/// Throws `links-broken` (no), which names what is.
void require_links(const Preflight& preflight);

}  // namespace mlenv::job
