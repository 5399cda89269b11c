#pragma once
// The answer of `diff`, for people and for programs.
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/diff_sides.hpp"

namespace mlenv::cli {

/// Lines: what matters most, then values, Python packages, Debian packages, layers, what to fetch.
std::vector<std::string> diff_text(const SideComparison& comparison);
/// mlenv.diff/1.
nlohmann::json diff_json(const Side& from, const Side& to, const SideComparison& comparison);

/// Appends each package that differs.
void print_packages(std::vector<std::string>& out, const EnvironmentDiff& installed);
/// Sets `wheels` and `debs` of mlenv.diff/1.
void add_installed(nlohmann::json& answer, const EnvironmentDiff& installed);

}  // namespace mlenv::cli
