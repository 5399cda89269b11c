#include "cli/age.hpp"

#include "base/duration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv::cli {

std::chrono::seconds age_of(const std::string& text, std::string_view example) {
  const auto age = parse_duration(text);
  if (age && !is_digit(text.back())) return std::chrono::ceil<std::chrono::seconds>(*age);
  throw usage_error("usage", "`--older-than {}` is no age", text)
      .hint(fmt::format("write a number and `d`, `h` or `m`: `{}`", example));
}

}  // namespace mlenv::cli
