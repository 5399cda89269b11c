#pragma once
// Spans of time as people write them.
#include <chrono>
#include <optional>
#include <string_view>

namespace mlenv {

/// `90` (seconds), `1.5s`, `500ms`, `10m`, `2h`, `30d`, and several in a row, the larger first:
/// `1h30m`. nullopt for anything else, a negative one, and more than a hundred years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace mlenv
