#include "recipes/resolve/direct_wheels.hpp"

#include <algorithm>

#include "base/http.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/direct_search.hpp"
#include "recipes/resolve/wheel_conflict.hpp"
#include "recipes/text.hpp"

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

void name_addresses(const std::vector<BuiltRelease>& direct, std::vector<std::string>& texts,
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

/// What uv is to know of a wheel that asks for others by addresses.
struct Told {
  ReleaseMetadata metadata;
  std::vector<const BuiltRelease*> named;
  bool rewritten = false;     ///< false: uv may read the wheel itself
  bool leaves_extra = false;  ///< an extra's address was left out
};

Told told_of(const BuiltRelease& asking, const std::vector<BuiltRelease>& direct) {
  Told told{.metadata = asking.metadata, .named = {}};
  told.metadata.requires_dist.clear();
  for (const std::string& text : asking.metadata.requires_dist) {
    auto wanted = read_dependency(text);
    if (!wanted || wanted->address.empty()) {
      told.metadata.requires_dist.push_back(text);
      continue;
    }
    told.rewritten = true;
    const BuiltRelease* other = find(direct, wanted->normalised_name());
    if (other == nullptr) {
      const bool of_extra = wanted->marker.find("extra") != std::string::npos;
      told.leaves_extra = told.leaves_extra || of_extra;
      continue;
    }
    wanted->address = url_of(*other);
    told.metadata.requires_dist.push_back(wanted->str());
    told.named.push_back(other);
  }
  return told;
}

/// The others that ask for it at the address that it is from.
std::vector<std::string> asking_for(const BuiltRelease& wanted,
                                    const std::vector<BuiltRelease>& direct) {
  std::vector<std::string> names;
  for (const BuiltRelease& one : direct) {
    for (const std::string& text : one.metadata.requires_dist) {
      const auto asked = read_dependency(text);
      if (!asked || asked->normalised_name() != wanted.wheel.name) continue;
      const auto read = parse_package_address(asked->address);
      const auto* address = std::get_if<PackageAddress>(&read);
      if (address == nullptr || !is_from(wanted.source, *address)) continue;
      names.push_back('`' + one.wheel.name + '`');
      break;
    }
  }
  return names;
}

std::string place_of(const LockedSource& source) {
  return source.url.empty() ? source.shown() : source.url;
}

}  // namespace

bool name_wheels(const std::vector<BuiltRelease>& direct, UvQuestion& question) {
  name_addresses(direct, question.requirements, false);
  name_addresses(direct, question.constraints, true);
  bool leaves_extra = false;
  for (const BuiltRelease& one : direct) {
    Told told = told_of(one, direct);
    if (!told.rewritten) continue;
    question.known.push_back(std::move(told.metadata));
    leaves_extra = leaves_extra || told.leaves_extra;
    for (const BuiltRelease* other : told.named) {
      // uv takes no address that it comes upon only later, as with an extra that an index's package
      // asks for.
      std::string known = fmt::format("{} @ {}", other->wheel.name, url_of(*other));
      if (std::find(question.constraints.begin(), question.constraints.end(), known) ==
          question.constraints.end()) {
        question.constraints.push_back(std::move(known));
      }
    }
  }
  return leaves_extra;
}

std::vector<std::string> direct_facts(const std::vector<BuiltRelease>& direct,
                                      const Conflict& conflict) {
  std::vector<std::string> facts;
  for (const BuiltRelease& one : direct) {
    if (!speaks_of(conflict, one.wheel.name)) continue;
    std::string fact = fmt::format("`{}` is {}, from `{}`", one.wheel.name, one.wheel.version,
                                   place_of(one.source));
    const std::vector<std::string> asking = asking_for(one, direct);
    if (!asking.empty()) {
      fact += fmt::format(", where {} {} for it", join(asking, " and "),
                          asking.size() == 1 ? "asks" : "ask");
    }
    facts.push_back(std::move(fact));
  }
  return facts;
}

}  // namespace mlenv
