#pragma once
// What must hold for any bytes given as a file of requirements: it is read, or refused as the
// person's mistake, and what was read survives a lock. The first line names the format: `#
// uv.lock`.
#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/requirement.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/requirement_text.hpp"

namespace mlenv::fuzz {

inline RequirementLists read_lists(std::string_view name, std::string_view text) {
  std::string why;
  const auto format = requirement_format(name, why).value_or(RequirementFormat::lines);
  const auto file = std::make_shared<const RequirementsText>(
      RequirementsText{std::string(name), std::string(text)});
  RequirementLists lists;
  const Recipe recipe;
  const RequirementFolder folder(recipe);
  const RequirementSource source{{"f", 1, 1}, {{"train", 1, 1}}, {{"dev", 1, 1}}};
  if (format == RequirementFormat::pyproject) {
    read_pyproject(folder, source, file, lists);
  } else if (format == RequirementFormat::pylock) {
    read_pylock_file("pylock.toml", file, lists);
  } else if (format == RequirementFormat::uv_lock) {
    read_uv_lock(folder, source, file, lists);
  } else {
    Mistakes mistakes(file->shown_path, file->text);
    for (const RequirementLine& line : parse_requirement_lines(text, mistakes)) {
      if (line.line < 1 || line.column < 1) throw std::logic_error("a line without a place");
      if (line.what == RequirementLine::What::requirement) {
        lists.requirements.push_back({line.text, file, line.line, line.column});
      }
    }
    if (!mistakes.empty()) throw mistakes.error("requirements-invalid");
  }
  return lists;
}

/// True when it was read. Throws std::logic_error when a promise is broken.
inline bool one_requirements(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  try {
    Lock lock;
    Recipe recipe;
    recipe.listed = read_lists(first.substr(first.rfind(' ') + 1), text);
    for (const ListedText& one : recipe.listed.requirements) {
      const auto again = parse_requirement(one.text);
      const auto* same = std::get_if<Requirement>(&again);
      if (same == nullptr || same->str() != one.text) {
        throw std::logic_error("a requirement that does not mean itself");
      }
    }
    lock.request = request_of(recipe);
    lock.request.base = "debian:bookworm";
    lock.settings.name = "a";
    lock.settings.workdir = "/";
    lock.distribution = "debian";
    lock.suite = "bookworm";
    lock.revision = least_revision(lock);
    if (parse_lock(render_lock(lock), "recipe.lock") != lock) {
      throw std::logic_error("what is asked for does not survive a lock file");
    }
    return true;
  } catch (const Error& error) {
    const bool known = error.code() == "requirements-invalid" || error.code() == "recipe-invalid";
    if (error.kind() != Kind::usage || !known) throw;
    return false;
  }
}

}  // namespace mlenv::fuzz
