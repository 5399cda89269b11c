#include "recipes/resolve/direct_wheels.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/http.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/direct_search.hpp"

namespace mlenv {
namespace {

std::string url_of(const BuiltRelease& release) {
  return "file://" + url_path_encode(fs::absolute(release.path).string());
}

const BuiltRelease* find(const std::vector<BuiltRelease>& direct, const std::string& name) {
  const auto found = std::find_if(direct.begin(), direct.end(),
                                  [&](const BuiltRelease& one) { return one.wheel.name == name; });
  return found == direct.end() ? nullptr : &*found;
}

void name_in(const std::vector<BuiltRelease>& direct, std::vector<std::string>& texts,
             bool constraints) {
  std::vector<std::string> kept;
  for (std::string& text : texts) {
    const auto read = parse_requirement(text);
    const auto* found = std::get_if<Requirement>(&read);
    if (found == nullptr || found->address.empty()) {
      kept.push_back(std::move(text));
      continue;
    }
    const BuiltRelease* release = find(direct, found->normalised_name());
    if (release == nullptr) continue;
    Requirement named = *found;
    named.address = url_of(*release);
    if (constraints) named.extras.clear();
    kept.push_back(named.str());
  }
  texts = std::move(kept);
}

std::set<std::string> extras_of(const BuiltRelease& release,
                                const std::vector<std::string>& requirements) {
  std::set<std::string> extras;
  for (const std::string& text : requirements) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one == nullptr || one->normalised_name() != release.wheel.name) continue;
    extras.insert(one->extras.begin(), one->extras.end());
  }
  return extras;
}

}  // namespace

void name_wheels(const std::vector<BuiltRelease>& direct, UvQuestion& question) {
  std::map<const BuiltRelease*, std::set<std::string>> overridden;
  for (const BuiltRelease& one : direct) {
    for (const std::string& text : one.metadata.requires_dist) {
      const auto wanted = read_dependency(text);
      if (!wanted || wanted->address.empty()) continue;
      const BuiltRelease* other = find(direct, wanted->normalised_name());
      if (other == nullptr) continue;
      overridden[other].insert(wanted->extras.begin(), wanted->extras.end());
    }
  }
  for (const BuiltRelease& other : direct) {
    const auto found = overridden.find(&other);
    if (found == overridden.end()) continue;
    // uv has an override take the place of extras too, and keeps the marker's `extra` itself.
    std::set<std::string> extras = extras_of(other, question.requirements);
    extras.insert(found->second.begin(), found->second.end());
    const Requirement named{
        other.wheel.name, {extras.begin(), extras.end()}, {}, {}, url_of(other)};
    question.overrides.push_back(named.str());
  }
  name_in(direct, question.requirements, false);
  name_in(direct, question.constraints, true);
}

}  // namespace mlenv
