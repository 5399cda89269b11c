#pragma once
// Debug log to stderr; off unless `--verbose`. For developers and bug reports, never for answers.
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace mlenv::log {

void enable();
bool enabled();
void write(std::string_view text);

template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled()) write(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace mlenv::log
