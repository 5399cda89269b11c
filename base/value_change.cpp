#include "base/value_change.hpp"

#include <set>

namespace mlenv {
namespace {

std::optional<std::string> value_of(const std::map<std::string, std::string>& values,
                                    const std::string& key) {
  const auto found = values.find(key);
  if (found == values.end()) return std::nullopt;
  return found->second;
}

}  // namespace

void compare_value(ValueChanges& out, std::string_view name, std::optional<std::string> from,
                   std::optional<std::string> to) {
  if (from != to) out.push_back({std::string(name), std::move(from), std::move(to)});
}

void compare_values(ValueChanges& out, std::string_view name,
                    const std::map<std::string, std::string>& from,
                    const std::map<std::string, std::string>& to) {
  std::set<std::string> keys;
  for (const auto& [key, text] : from) keys.insert(key);
  for (const auto& [key, text] : to) keys.insert(key);
  const std::string lead = name.empty() ? std::string{} : std::string(name) + ' ';
  for (const std::string& key : keys) {
    compare_value(out, lead + key, value_of(from, key), value_of(to, key));
  }
}

std::optional<std::string> if_given(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return std::string(text);
}

}  // namespace mlenv
