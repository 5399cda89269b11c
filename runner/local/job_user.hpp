#pragma once
// Who a run's command is, of what the image, the person and the machine say.
#include "runner/local/image_root.hpp"
#include "runner/local/run.hpp"
#include "runner/local/user.hpp"

namespace mlenv {

/// With a single id there is but one user, the caller, and in the container they are root: whoever
/// asks for another is refused (`no-user-map`). Throws `no-user`.
ContainerUser job_user(const LocalRun& run, const ImageRoot& image, bool single_id);

}  // namespace mlenv
