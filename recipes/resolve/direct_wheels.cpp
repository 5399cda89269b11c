#include "recipes/resolve/direct_wheels.hpp"

#include <algorithm>
#include <set>

#include "base/http.hpp"
#include "recipes/requirement.hpp"

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
  for (std::string& text : texts) {
    const auto read = parse_requirement(text);
    const auto* found = std::get_if<Requirement>(&read);
    if (found == nullptr || found->address.empty()) continue;
    const BuiltRelease* release = find(direct, found->normalised_name());
    if (release == nullptr) continue;
    Requirement named = *found;
    named.address = url_of(*release);
    if (constraints) named.extras.clear();
    text = named.str();
  }
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
  for (const BuiltRelease& one : direct) {
    for (const std::string& text : one.metadata.requires_dist) {
      const auto read = parse_requirement(text);
      const auto* wanted = std::get_if<Requirement>(&read);
      if (wanted == nullptr || wanted->address.empty()) continue;
      const BuiltRelease* other = find(direct, wanted->normalised_name());
      if (other == nullptr) continue;
      // uv has an override take the place of extras too.
      std::set<std::string> extras = extras_of(*other, question.requirements);
      extras.insert(wanted->extras.begin(), wanted->extras.end());
      Requirement named{
          other->wheel.name, {extras.begin(), extras.end()}, {}, wanted->marker, url_of(*other)};
      question.overrides.push_back(named.str());
    }
  }
  name_in(direct, question.requirements, false);
  name_in(direct, question.constraints, true);
}

}  // namespace mlenv
