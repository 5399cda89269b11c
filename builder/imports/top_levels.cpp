#include "builder/imports/top_levels.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/paths.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kInfoEnding = ".dist-info";
constexpr std::size_t kMostImports = 64;
constexpr std::size_t kMostHosts = 3;
constexpr std::size_t kDeepestPackage = 3;
constexpr std::array<std::string_view, 13> kPartsOfProject = {
    "setup",   "conftest", "test",      "tests",      "testing", "docs", "doc",
    "example", "examples", "benchmark", "benchmarks", "scripts", "tools"};

bool is_identifier(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '_'; });
}

/// The path of a line of RECORD, which is CSV.
std::string recorded_path(std::string_view line) {
  if (!line.starts_with('"')) return std::string(line.substr(0, line.find(',')));
  std::string path;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"' && (i + 1 == line.size() || line[++i] != '"')) break;
    path += line[i];
  }
  return path;
}

/// What one file makes importable; empty: nothing.
std::string name_of_file(std::string_view path) {
  const std::vector<std::string_view> parts = split(path, '/');
  if (parts.size() == 1) {
    const std::string_view name = path.substr(0, path.find('.'));
    const std::string_view ending = path.substr(std::min(name.size() + 1, path.size()));
    const bool is_module = ending == "py" || (ending.ends_with("so") && !name.starts_with("lib"));
    return is_module && is_identifier(name) ? std::string(name) : std::string{};
  }
  if (parts.back() != "__init__.py" || parts.size() > kDeepestPackage + 1) return {};
  if (!std::all_of(parts.begin(), parts.end() - 1, is_identifier)) return {};
  return join({parts.begin(), parts.end() - 1}, ".");
}

bool is_part_of_project(std::string_view name) {
  const std::vector<std::string_view> parts = split(name, '.');
  return std::any_of(parts.begin(), parts.end(), [](std::string_view one) {
    return one.starts_with('_') || is_among(kPartsOfProject, one);
  });
}

/// `opt/venv/lib/python3.11/site-packages`, by whatever version.
std::vector<std::string> site_folders(LayerStack& image) {
  std::vector<std::string> sites;
  for (const std::string& python : image.entries("opt/venv/lib")) {
    const std::string site = below(python, "site-packages");
    const auto found = image.find(site);
    if (found && S_ISDIR(found->status.st_mode)) sites.push_back(site);
  }
  return sites;
}

/// Names of `Requires-Dist`, normalised.
struct RequiredNames {
  std::vector<std::string> always{};
  std::vector<std::string> of_extras{};
};
RequiredNames required_names(LayerStack& image, const std::string& metadata) {
  constexpr std::string_view kKey = "Requires-Dist:";
  const auto file = image.find(metadata);
  RequiredNames names;
  if (!file || !S_ISREG(file->status.st_mode)) return names;
  const std::string text = read_small_file(file->path, size_limit::kWheelMetadata);
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty() || line == "\r") break;  // the description
    if (!line.starts_with(kKey)) continue;
    const std::string_view rest = trim(line.substr(kKey.size()));
    std::vector<std::string>& list = says(rest, "extra ==") ? names.of_extras : names.always;
    list.push_back(name_of_requirement(rest));
  }
  return names;
}

}  // namespace

std::vector<std::string> top_levels(std::string_view record) {
  std::set<std::string> found;
  for (const std::string_view line : split(record, '\n')) {
    std::string name = name_of_file(recorded_path(trim(line)));
    if (!name.empty()) found.insert(std::move(name));
  }
  const auto is_inside = [&](const std::string& name) {
    for (std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0;
         dot = name.rfind('.', dot - 1)) {
      if (found.contains(name.substr(0, dot))) return true;
    }
    return false;
  };
  std::vector<std::string> tops;
  std::copy_if(found.begin(), found.end(), std::back_inserter(tops),
               [&](const std::string& name) { return !is_inside(name); });
  std::erase_if(tops, [](const std::string& name) { return is_part_of_project(name); });
  return tops;
}

namespace {

using RankedPackages = std::map<std::pair<std::size_t, std::string>, ImportablePackage>;
using HostsOf = std::map<std::string, std::vector<std::string>>;

/// By its folder of metadata, which has a RECORD.
ImportablePackage package_of_folder(std::string_view folder) {
  const std::string_view stem = folder.substr(0, folder.size() - kInfoEnding.size());
  const std::size_t dash = std::min(stem.find('-'), stem.size());
  return {normalise_wheel_name(stem.substr(0, dash)),
          std::string(stem.substr(std::min(dash + 1, stem.size()))),
          {}};
}

/// What is said in the folder `path` of metadata; nothing where it is none.
std::optional<ImportablePackage> read_package(LayerStack& image, const std::string& path,
                                              HostsOf& hosts) {
  const std::string_view folder = last_part(path);
  if (!folder.ends_with(kInfoEnding)) return std::nullopt;
  const auto record = image.find(below(path, "RECORD"));
  if (!record || !S_ISREG(record->status.st_mode)) return std::nullopt;
  ImportablePackage one = package_of_folder(folder);
  one.imports = top_levels(read_small_file(record->path, size_limit::kWheelRecord));
  if (one.imports.empty()) return one;
  RequiredNames names = required_names(image, below(path, "METADATA"));
  for (std::string& needed : names.always) {
    hosts[std::move(needed)].push_back(one.imports.front());
  }
  one.of_extras = std::move(names.of_extras);
  return one;
}

/// Each name is imported once, by the first that has it, and of each package so many at most.
void bound_imports(ImportablePackage& one, std::set<std::string>& taken) {
  std::erase_if(one.imports, [&](const std::string& name) { return taken.contains(name); });
  if (one.imports.size() > kMostImports) {
    one.left_out = one.imports.size() - kMostImports;
    one.imports.resize(kMostImports);
  }
  taken.insert(one.imports.begin(), one.imports.end());
}

}  // namespace

std::vector<ImportablePackage> importable_packages(LayerStack& image,
                                                   const std::vector<std::string>& first) {
  std::map<std::string, std::size_t> rank;
  for (const std::string& name : first) rank.emplace(normalise_wheel_name(name), rank.size());
  RankedPackages all;
  HostsOf hosts;
  for (const std::string& site : site_folders(image)) {
    for (const std::string& path : image.entries(site)) {
      std::optional<ImportablePackage> one = read_package(image, path, hosts);
      if (!one) continue;
      const auto ranked = rank.find(one->name);
      const std::size_t place = ranked == rank.end() ? rank.size() : ranked->second;
      std::string name = one->name;
      all.emplace(std::pair{place, std::move(name)}, *std::move(one));
    }
  }
  std::vector<ImportablePackage> ordered;
  std::set<std::string> taken;
  for (auto& [place, one] : all) {
    bound_imports(one, taken);
    if (const auto found = hosts.find(one.name); found != hosts.end()) {
      one.hosts = found->second;
      if (one.hosts.size() > kMostHosts) one.hosts.resize(kMostHosts);
    }
    ordered.push_back(std::move(one));
  }
  return ordered;
}

}  // namespace mlenv
