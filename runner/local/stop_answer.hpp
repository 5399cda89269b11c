#pragma once
// The control socket of a run that has no container of its own here: it can be ended, and nothing
// else.
#include <optional>

#include "base/handle.hpp"
#include "runner/local/control.hpp"

namespace mlenv {

/// Takes the one packet of a connection that can be read, and answers it. nullopt: it was no
/// request to stop, or nobody is there any more.
std::optional<StopRequest> answer_stop_alone(Fd connection);

}  // namespace mlenv
