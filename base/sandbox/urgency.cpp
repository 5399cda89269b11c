#include "base/sandbox/urgency.hpp"

#include <sched.h>

namespace mlenv::sandbox {

void set_urgent(Urgency urgency) noexcept {
  // What is urgent already may stay so without the right to become it; a caller's own policy stays.
  const int now = ::sched_getscheduler(0);
  const bool is_urgent = (now & ~SCHED_RESET_ON_FORK) == SCHED_RR;
  if (is_urgent == (urgency == Urgency::kept)) return;
  const bool urgent = urgency != Urgency::none;
  const sched_param level{urgent ? ::sched_get_priority_min(SCHED_RR) : 0};
  const int children = urgency == Urgency::itself ? SCHED_RESET_ON_FORK : 0;
  (void)::sched_setscheduler(0, (urgent ? SCHED_RR : SCHED_OTHER) | children, &level);
}

}  // namespace mlenv::sandbox
