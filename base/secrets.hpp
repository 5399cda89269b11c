#pragma once
// Comparing what must stay secret.
#include <string_view>

namespace mlenv {

/// Whether both are the same. How long it takes depends on their lengths alone: whoever guesses
/// learns nothing from the time of an answer.
bool same_secret(std::string_view one, std::string_view other);

}  // namespace mlenv
