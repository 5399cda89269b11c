#pragma once
// What an engine says when it starts no container, in words of ours.
#include <string_view>

#include "base/error.hpp"

namespace mlenv {

/// `words`: all that it wrote. `run-failed`, `no-network`, `port-taken`, `bad-mount` (usage).
Error container_not_started(std::string_view engine, std::string_view words);

}  // namespace mlenv
