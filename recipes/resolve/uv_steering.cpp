#include "recipes/resolve/uv_steering.hpp"

#include <algorithm>

#include "base/http.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/wheel_conflict.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kIndexProject = "mlenv-own-indexes";
constexpr std::string_view kNever = " ; python_version < '0'";

std::string address_of(const Recipe& recipe, const PackageIndex& index) {
  if (index.url.find("://") != std::string::npos) return index.url;
  const fs::path path = fs::absolute(recipe.folder() / index.url).lexically_normal();
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) {
    const auto place = std::find_if(recipe.index_folders.begin(), recipe.index_folders.end(),
                                    [&](const Placed& one) { return one.text == index.url; });
    const std::string why =
        fmt::format("`{}`, where packages are looked for, is no folder", index.url);
    if (place != recipe.index_folders.end()) throw recipe_error(recipe, *place, why);
    throw usage_error("requirements-invalid", "{}", why);
  }
  return "file://" + url_path_encode(path.string());
}

bool comes_up(const UvAnswer& answer, const std::string& name) {
  if (const auto* packages = std::get_if<PylockPackages>(&answer)) {
    return find_pylock_package(*packages, name) != nullptr;
  }
  if (const auto* build = std::get_if<NeedsBuild>(&answer)) return build->name == name;
  return speaks_of(std::get<Conflict>(answer), name);
}

bool is_pinned(const Recipe& recipe, const std::string& requirement) {
  const auto read = parse_requirement(requirement);
  const auto* one = std::get_if<Requirement>(&read);
  return one != nullptr && one->address.empty() && has_own_index(recipe, one->normalised_name());
}

}  // namespace

void SteeredSteps::begin() {
  question_.overrides = override_lines(steering_);
  question_.from_source = steering_.no_binary;
  question_.only_wheels.assign(steering_.only_binary.begin(), steering_.only_binary.end());
  question_.prerelease = steering_.prerelease;
  for (const StatedMetadata& one : steering_.metadata) {
    question_.known.push_back(
        {one.name, one.version, one.requires_dist, one.requires_python, one.extras});
  }
}

bool SteeredSteps::names_own_indexes(const UvAnswer& answer) {
  bool more = false;
  for (const PackageIndex& index : steering_.indexes) {
    for (const std::string& name : index.packages) {
      if (is_asked_for(name) || !comes_up(answer, name)) continue;
      question_.requirements.push_back(name);
      more = true;
    }
  }
  return more;
}

bool SteeredSteps::is_asked_for(const std::string& name) const {
  return std::any_of(question_.requirements.begin(), question_.requirements.end(),
                     [&](const std::string& text) { return package_of_requirement(text) == name; });
}

bool SteeredSteps::prefers_wheel(const std::string& name) {
  if (!names_package(steering_.prefer_binary, name)) return false;
  if (!preferred_.insert(name).second) return false;
  question_.only_wheels.push_back(name);
  tried_.push_back(name);
  return true;
}

bool SteeredSteps::prefers_wheel(const UvAnswer& answer) {
  if (const auto* build = std::get_if<NeedsBuild>(&answer)) return prefers_wheel(build->name);
  if (tried_.empty() || !std::holds_alternative<Conflict>(answer)) return false;
  std::erase(question_.only_wheels, tried_.back());
  tried_.pop_back();
  return true;
}

std::vector<std::string> steering_facts(const Steering& steering, const Conflict& conflict) {
  std::vector<std::string> facts;
  for (const std::string& name : steering.no_binary) {
    if (!speaks_of(conflict, name)) continue;
    facts.push_back(fmt::format("`no-binary` leaves the wheels of `{}` out", name));
  }
  for (const std::string& name : steering.only_binary) {
    if (!speaks_of(conflict, name)) continue;
    facts.push_back(fmt::format("`only-binary` leaves the sources of `{}` out", name));
  }
  return facts;
}

bool has_own_index(const Recipe& recipe, const std::string& name) {
  const std::vector<PackageIndex>& all = recipe.steering.indexes;
  return std::any_of(all.begin(), all.end(),
                     [&](const PackageIndex& one) { return one.packages.contains(name); });
}

std::vector<std::string> override_lines(const Steering& steering) {
  std::vector<std::string> lines;
  for (const std::string& one : steering.overrides) {
    if (!steering.exclude.contains(package_of_requirement(one))) lines.push_back(one);
  }
  for (const std::string& name : steering.exclude) lines.push_back(name + std::string(kNever));
  return lines;
}

std::string without_own_project(std::string text) {
  const std::string said = std::string(kIndexProject) + " depends on";
  for (std::size_t at = text.find(said); at != std::string::npos; at = text.find(said, at)) {
    text.replace(at, said.size(), "you require");
  }
  return text;
}

UvSteering::UvSteering(const UvQuestion& question, const Recipe* recipe, const fs::path& folder) {
  std::vector<std::string> pinned;
  for (const std::string& one : question.requirements) {
    (recipe != nullptr && is_pinned(*recipe, one) ? pinned : requirements_).push_back(one);
  }
  if (!pinned.empty()) write_project(*recipe, pinned, folder);
  write_overrides(question, folder);
  if (!question.prerelease.empty()) {
    words_.emplace_back("--prerelease");
    words_.push_back(question.prerelease);
  }
  if (recipe != nullptr && !recipe->steering.exclude_newer.empty()) {
    // A day ends at the same moment on every machine.
    const std::string& date = recipe->steering.exclude_newer;
    words_.emplace_back("--exclude-newer");
    words_.push_back(date.find('T') == std::string::npos ? date + "T23:59:59Z" : date);
  }
  if (question.no_sources) return;  // both at once leave nothing
  for (const std::string& name : question.from_source) {
    words_.emplace_back("--no-binary");
    words_.push_back(name);
  }
}

void UvSteering::write_overrides(const UvQuestion& question, const fs::path& folder) {
  if (question.overrides.empty()) return;
  write_file(folder / "overrides.txt", join(question.overrides, "\n") + '\n', false);
  words_.emplace_back("--overrides");
  words_.emplace_back("overrides.txt");
}

void UvSteering::write_project(const Recipe& recipe, const std::vector<std::string>& pinned,
                               const fs::path& folder) {
  std::string text =
      fmt::format("[project]\nname = {}\nversion = \"0\"\ndependencies = {}\n\n[tool.uv.sources]\n",
                  toml_text(kIndexProject), toml_list(pinned));
  std::string indexes;
  int number = 0;
  for (const PackageIndex& one : recipe.steering.indexes) {
    const std::string name = fmt::format("own-{}", ++number);
    for (const std::string& package : one.packages) {
      text += fmt::format("{} = {{ index = \"{}\" }}\n", toml_key(package), name);
    }
    const bool used = std::any_of(pinned.begin(), pinned.end(), [&](const std::string& asked) {
      return one.packages.contains(package_of_requirement(asked));
    });
    // A folder that is not there matters to those alone who are sent there.
    const std::string address = used ? address_of(recipe, one) : "https://unused.invalid/";
    indexes += fmt::format("\n[[tool.uv.index]]\nname = \"{}\"\nurl = {}\nexplicit = true\n", name,
                           toml_text(address));
    if (one.is_page) indexes += "format = \"flat\"\n";
    if (used) addresses_.push_back(address);
  }
  make_folders(folder / "own");
  write_file(folder / "own" / "pyproject.toml", text + indexes, false);
  words_.emplace_back("own/pyproject.toml");
}

}  // namespace mlenv
