#pragma once
// `--older-than`: how long ago something was, before it is taken away.
#include <chrono>
#include <string>
#include <string_view>

namespace mlenv::cli {

/// `7d`, `12h`, `1d12h`. A number without a unit is no age: seconds would be a surprise. Throws
/// `usage`, which shows `example`.
std::chrono::seconds age_of(const std::string& text, std::string_view example);

}  // namespace mlenv::cli
