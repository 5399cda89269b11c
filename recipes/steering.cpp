#include "recipes/steering.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/core.h>

#include "base/digest.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

void sort_texts(std::vector<std::string>& texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
}

/// Those of `more` whose package `first` says nothing of.
void add_requirements(std::vector<std::string>& first, const std::vector<std::string>& more) {
  std::set<std::string> named;
  for (const std::string& one : first) named.insert(package_of_requirement(one));
  for (const std::string& one : more) {
    if (!named.contains(package_of_requirement(one))) first.push_back(one);
  }
}

/// `rival`: the list of the same recipe that says the opposite.
void add_names(std::set<std::string>& first, const std::set<std::string>& more,
               const std::set<std::string>& rival) {
  for (const std::string& name : more) {
    if (!rival.contains(name)) first.insert(name);
  }
}

void add_indexes(std::vector<PackageIndex>& first, const std::vector<PackageIndex>& more) {
  std::set<std::string> named;
  for (const PackageIndex& one : first) named.insert(one.packages.begin(), one.packages.end());
  for (PackageIndex one : more) {
    std::erase_if(one.packages, [&](const std::string& name) { return named.contains(name); });
    if (!one.packages.empty()) first.push_back(std::move(one));
  }
}

void add_metadata(std::vector<StatedMetadata>& first, const std::vector<StatedMetadata>& more) {
  const std::size_t own = first.size();
  for (const StatedMetadata& one : more) {
    const auto end = first.begin() + static_cast<std::ptrdiff_t>(own);
    const bool said = std::any_of(first.begin(), end, [&](const StatedMetadata& other) {
      return other.name == one.name && other.version == one.version;
    });
    if (!said) first.push_back(one);
  }
}

template <class Value>
void add_by_package(BuildSteering::ByPackage<Value>& first,
                    const BuildSteering::ByPackage<Value>& more) {
  first.all.insert(more.all.begin(), more.all.end());
  for (const auto& [name, values] : more.by_name) {
    first.by_name[name].insert(values.begin(), values.end());
  }
}

template <class Value>
void leave_empty_out(BuildSteering::ByPackage<Value>& values) {
  std::erase_if(values.by_name, [](const auto& one) { return one.second.empty(); });
}

}  // namespace

std::span<const std::string_view> prerelease_words() {
  static constexpr std::array<std::string_view, 5> kWords = {
      "allow", "disallow", "explicit", "if-necessary", "if-necessary-or-explicit"};
  return kWords;
}

bool is_upload_date(std::string_view text) {
  constexpr std::string_view kDay = "0000-00-00";
  constexpr std::string_view kMoment = "0000-00-00T00:00:00Z";
  if (text.size() != kDay.size() && text.size() != kMoment.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kMoment[i] == '0' ? !is_digit(text[i]) : text[i] != kMoment[i]) return false;
  }
  const std::string_view month = text.substr(5, 2);
  const std::string_view day = text.substr(8, 2);
  return month >= "01" && month <= "12" && day >= "01" && day <= "31";
}

bool names_package(const std::set<std::string>& list, const std::string& name) {
  return list.contains(name) || list.contains(std::string(kAllPackages));
}

std::string package_of_requirement(const std::string& requirement) {
  const auto read = parse_requirement(requirement);
  const auto* one = std::get_if<Requirement>(&read);
  return one == nullptr ? requirement : one->normalised_name();
}

void put_in_order(Steering& steering) {
  sort_texts(steering.overrides);
  sort_texts(steering.build.constraints);
  for (auto& [name, texts] : steering.build.requirements) sort_texts(texts);
  std::erase_if(steering.build.requirements, [](const auto& one) { return one.second.empty(); });
  leave_empty_out(steering.build.env);
  leave_empty_out(steering.build.config_settings);
  std::map<std::pair<std::string, bool>, std::set<std::string>> by_url;
  for (const PackageIndex& one : steering.indexes) {
    by_url[{one.url, one.is_page}].insert(one.packages.begin(), one.packages.end());
  }
  steering.indexes.clear();
  for (auto& [place, packages] : by_url) {
    steering.indexes.push_back({place.first, place.second, std::move(packages)});
  }
  for (StatedMetadata& one : steering.metadata) {
    sort_texts(one.requires_dist);
    sort_texts(one.extras);
  }
  std::sort(steering.metadata.begin(), steering.metadata.end(),
            [](const StatedMetadata& a, const StatedMetadata& b) {
              return std::tie(a.name, a.version) < std::tie(b.name, b.version);
            });
}

void add_steering(Steering& first, const Steering& more) {
  add_requirements(first.overrides, more.overrides);
  add_names(first.exclude, more.exclude, {});
  const Steering own = first;
  add_names(first.no_binary, more.no_binary, own.only_binary);
  add_names(first.only_binary, more.only_binary, own.no_binary);
  add_names(first.prefer_binary, more.prefer_binary, own.no_binary);
  if (first.prerelease.empty()) first.prerelease = more.prerelease;
  if (first.exclude_newer.empty()) first.exclude_newer = more.exclude_newer;
  add_indexes(first.indexes, more.indexes);
  add_metadata(first.metadata, more.metadata);
  add_requirements(first.build.constraints, more.build.constraints);
  first.build.requirements.insert(more.build.requirements.begin(), more.build.requirements.end());
  add_by_package(first.build.env, more.build.env);
  add_by_package(first.build.config_settings, more.build.config_settings);
  first.build.network = first.build.network || more.build.network;
  put_in_order(first);
}

Steering locked_steering(Steering steering) {
  for (PackageIndex& one : steering.indexes) {
    one.url = Digest::of(fmt::format("{} {}", one.is_page ? "find-links" : "index", one.url)).hex();
    one.is_page = false;
  }
  put_in_order(steering);
  return steering;
}

}  // namespace mlenv
