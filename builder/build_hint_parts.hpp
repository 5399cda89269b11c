#pragma once
// What the two halves of build_hint.hpp share.
#include <initializer_list>
#include <optional>
#include <span>
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
/// `build: {constraints}` with all that the recipe has of other packages, and these.
std::string constrained(const FailedBuild& build, std::span<const std::string_view> wanted);
std::string with_variable(const FailedBuild& build, std::string_view name, std::string_view value);
std::string on_system(std::string_view packages);
/// With the libraries that sources of this package are known to need, so that one round does.
std::string on_system_with_needs(const FailedBuild& build, std::string_view packages);

}  // namespace mlenv::hints
