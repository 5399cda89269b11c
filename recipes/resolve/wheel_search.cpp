#include "recipes/resolve/wheel_search.hpp"

#include <algorithm>

#include "recipes/requirement.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/steering.hpp"

namespace mlenv {
namespace {

std::set<std::string> requested_names(const Recipe& recipe) {
  std::set<std::string> names;
  for (const std::string& text : framework_requirements(recipe).requirements) {
    names.insert(package_of_requirement(text));
  }
  return names;
}

}  // namespace

std::vector<std::string> wheel_files(const PylockPackage& package) {
  std::vector<std::string> files;
  files.reserve(package.wheels.size());
  for (const PylockWheel& wheel : package.wheels) files.push_back(wheel.file);
  return files;
}

WheelSearch::WheelSearch(const WheelRequest& request, const fs::path& uv, const fs::path& cache)
    : request_(request),
      uv_(uv),
      cache_(cache),
      tags_(version_prefix(request.python, 2), request.glibc, request.architecture),
      requested_(requested_names(*request.recipe)) {
  const FrameworkRequirements all = framework_requirements(*request.recipe);
  question.requirements = all.requirements;
  question.constraints = all.constraints;
  question.constraints.insert(question.constraints.end(), request.limits.begin(),
                              request.limits.end());
}

UvAnswer WheelSearch::ask_for_python(const UvQuestion& asked, const std::string& minor) const {
  WheelRequest other = request_;
  other.python = minor + ".0";
  return ask_uv(asked, other, uv_, cache_);
}

const BuiltRelease* WheelSearch::direct_of(const std::string& name) const {
  if (request_.direct == nullptr) return nullptr;
  const auto found = std::find_if(request_.direct->begin(), request_.direct->end(),
                                  [&](const auto& one) { return one.wheel.name == name; });
  return found == request_.direct->end() ? nullptr : &*found;
}

bool WheelSearch::is_from_source(const std::string& name) const {
  return names_package(question.from_source, name) && direct_of(name) == nullptr;
}

std::optional<std::size_t> WheelSearch::best_of(const PylockPackage& package) const {
  return tags_.best(wheel_files(package));
}

const PylockPackage* WheelSearch::without_wheel(const PylockPackages& packages) const {
  for (const PylockPackage& package : packages) {
    if (!best_of(package)) return &package;
  }
  return nullptr;
}

}  // namespace mlenv
