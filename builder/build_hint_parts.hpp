#pragma once
// What the two halves of build_hint.hpp share.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "builder/build_hint.hpp"

namespace mlenv::hints {

using Hint = std::optional<std::string>;

/// As `build_hint` has it.
std::string any(const FailedBuild& build);

/// What Python says: modules that are not there, build tools that are too new.
Hint of_python(const FailedBuild& build);

bool says(const FailedBuild& build, std::string_view text);
bool says_any(const FailedBuild& build, std::initializer_list<std::string_view> texts);
bool has_tool(const FailedBuild& build, std::string_view name);
/// What stands between `before` and one of `ends` at the last place where `before` does; empty:
/// nowhere.
std::string_view last_between(std::string_view text, std::string_view before,
                              std::string_view ends);

// Lines of a recipe, as a hint shows them.
std::string requiring(const FailedBuild& build, std::string_view what);
std::string constrained(std::string_view what);
std::string with_variable(const FailedBuild& build, std::string_view name, std::string_view value);
std::string on_system(std::string_view packages);

}  // namespace mlenv::hints
