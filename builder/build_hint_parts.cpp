#include "builder/build_hint_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "builder/debian_files.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/text.hpp"

namespace mlenv::hints {
namespace {

std::string named(const FailedBuild& build) {
  return build.package.empty() ? "NAME" : build.package;
}

}  // namespace

bool says(const FailedBuild& build, std::string_view text) {
  return build.said.find(text) != std::string_view::npos;
}

bool says_any(const FailedBuild& build, std::initializer_list<std::string_view> texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](std::string_view text) { return says(build, text); });
}

bool has_tool(const FailedBuild& build, std::string_view name) {
  return std::find(build.tools.begin(), build.tools.end(), name) != build.tools.end();
}

std::string requiring(const FailedBuild& build, std::string_view what) {
  return fmt::format("`build: {{requires: {{{}: [{}]}}}}`", named(build), what);
}

std::string constrained(const FailedBuild& build, std::span<const std::string_view> wanted) {
  const auto is_wanted = [&](std::string_view known) {
    return std::any_of(wanted.begin(), wanted.end(), [&](std::string_view one) {
      return name_of_requirement(one) == name_of_requirement(known);
    });
  };
  std::vector<std::string> lines;
  for (const std::string& known : build.constraints) {
    if (!is_wanted(known)) lines.push_back(fmt::format("\"{}\"", known));
  }
  for (const std::string_view one : wanted) lines.push_back(fmt::format("\"{}\"", one));
  return fmt::format("`build: {{constraints: [{}]}}`", join(lines, ", "));
}

std::string with_variable(const FailedBuild& build, std::string_view name, std::string_view value) {
  return fmt::format("`build: {{env: {{{}: {{{}: \"{}\"}}}}}}`", named(build), name, value);
}

std::string on_system(std::string_view packages) { return fmt::format("`system: [{}]`", packages); }

std::string on_system_with_needs(const FailedBuild& build, std::string_view packages) {
  std::vector<std::string_view> all = split(packages, ',');
  for (std::string_view& one : all) one = trim(one);
  for (const std::string_view need : split(needs_of_source(build.package), ' ')) {
    if (!need.empty() && std::find(all.begin(), all.end(), need) == all.end()) all.push_back(need);
  }
  return on_system(fmt::format("{}", fmt::join(all, ", ")));
}

std::string_view last_between(std::string_view text, std::string_view before,
                              std::string_view ends) {
  const std::size_t at = text.rfind(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, std::min(text.find_first_of(ends), text.size()));
}

}  // namespace mlenv::hints
