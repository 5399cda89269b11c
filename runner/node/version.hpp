#pragma once
#include <string_view>

namespace mlenv::job {

/// Of this mlenv.
std::string_view own_version();

}  // namespace mlenv::job
