#pragma once
// Named values that differ between two things.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

struct ValueChange {
  std::string name;
  std::optional<std::string> from;  ///< nullopt: not there
  std::optional<std::string> to;
  friend bool operator==(const ValueChange&, const ValueChange&) = default;
};
using ValueChanges = std::vector<ValueChange>;

/// Appends when they differ.
void compare_value(ValueChanges& out, std::string_view name, std::optional<std::string> from,
                   std::optional<std::string> to);

/// The same for each key of either, sorted: `env KEY` where `name` is `env`, `KEY` where it is
/// empty.
void compare_values(ValueChanges& out, std::string_view name,
                    const std::map<std::string, std::string>& from,
                    const std::map<std::string, std::string>& to);

/// nullopt for an empty text: one that says that nothing is there.
std::optional<std::string> if_given(std::string_view text);

}  // namespace mlenv
