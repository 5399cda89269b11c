#include <algorithm>
#include <set>
#include <variant>

#include <fmt/core.h>

#include "recipes/environment.hpp"
#include "recipes/lock_steering.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/solv.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using ListedPackages = std::vector<ListedPackage>;
using ChangeWhat = PackageChange::What;
/// As `<=>`: whether the first is older than the second.
using Order = int (*)(std::string_view, std::string_view);

int order_of_wheels(std::string_view a, std::string_view b) {
  const auto order = compare_versions(unescaped_version(a), unescaped_version(b));
  return std::is_lt(order) ? -1 : std::is_gt(order) ? 1 : 0;
}

std::string_view machine_of(std::string_view platform) {
  return platform.substr(std::min(platform.size(), platform.find('/') + 1));
}

/// One that another version would take the place of. To dpkg `all` is the machine's own.
std::string slot_of(const ListedPackage& package, std::string_view machine) {
  if (package.architecture.empty()) return package.name;
  const bool is_own = package.architecture == "all";
  return package.name + ':' + (is_own ? std::string(machine) : package.architecture);
}

template <typename T>
bool are_other(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

std::optional<PackageChange> change_between(const ListedPackage& from, const ListedPackage& to,
                                            Order order) {
  const int direction = order(from.version, to.version);
  if (direction < 0) return PackageChange{ChangeWhat::upgraded, from, to};
  if (direction > 0) return PackageChange{ChangeWhat::downgraded, from, to};
  if (are_other(from.digest, to.digest)) return PackageChange{ChangeWhat::other_bytes, from, to};
  const bool both_told = !from.file.empty() && !to.file.empty();
  if (both_told && from != to) return PackageChange{ChangeWhat::other_record, from, to};
  return std::nullopt;
}

/// Those of one slot. There is one on each side but where an image has a package in several places.
void pair_up(ListedPackages from, ListedPackages to, Order order, std::vector<PackageChange>& out) {
  for (auto one = from.begin(); one != from.end() && from.size() + to.size() > 2;) {
    const auto same = std::find_if(to.begin(), to.end(), [&](const ListedPackage& other) {
      return !change_between(*one, other, order);
    });
    if (same == to.end()) {
      ++one;
    } else {
      to.erase(same);
      one = from.erase(one);
    }
  }
  for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i) {
    if (i >= from.size()) {
      out.push_back({ChangeWhat::added, std::nullopt, to[i]});
    } else if (i >= to.size()) {
      out.push_back({ChangeWhat::removed, from[i], std::nullopt});
    } else if (auto change = change_between(from[i], to[i], order)) {
      out.push_back(*std::move(change));
    }
  }
}

std::vector<PackageChange> diff_packages(const ListedPackages& from, const ListedPackages& to,
                                         std::string_view machine, Order order) {
  std::map<std::string, std::pair<ListedPackages, ListedPackages>> slots;
  for (const ListedPackage& one : from) slots[slot_of(one, machine)].first.push_back(one);
  for (const ListedPackage& one : to) slots[slot_of(one, machine)].second.push_back(one);
  std::vector<PackageChange> out;
  for (auto& [slot, sides] : slots) {
    pair_up(std::move(sides.first), std::move(sides.second), order, out);
  }
  return out;
}

void diff_all_packages(EnvironmentDiff& out, const Environment& from, const Environment& to) {
  const std::string_view machine = machine_of(to.platform);
  out.debs = diff_packages(from.debs, to.debs, machine, &solv::compare_versions);
  out.wheels = diff_packages(from.wheels, to.wheels, machine, &order_of_wheels);
}

/// nullopt also where packages of two releases are mixed.
std::optional<LockedCuda> cuda_in(const Environment& environment) {
  std::vector<LockedWheel> wheels;
  for (const ListedPackage& one : environment.wheels) {
    // Names and versions tell it; images say nothing of the rest.
    wheels.push_back({one.name, one.version, {}, 0, Digest::of(""), false});
  }
  const auto found = locked_cuda(wheels);
  const auto* cuda = std::get_if<std::optional<LockedCuda>>(&found);
  return cuda == nullptr ? std::nullopt : *cuda;
}

void compare_cuda(ValueChanges& out, const std::optional<LockedCuda>& from,
                  const std::optional<LockedCuda>& to) {
  compare_value(out, "cuda", if_given(from ? from->release : ""), if_given(to ? to->release : ""));
  compare_value(out, "oldest driver", if_given(from ? from->min_driver : ""),
                if_given(to ? to->min_driver : ""));
  compare_value(out, "cudnn", if_given(from ? from->cudnn : ""), if_given(to ? to->cudnn : ""));
  compare_value(out, "nccl", if_given(from ? from->nccl : ""), if_given(to ? to->nccl : ""));
  compare_value(out, "gpu code", if_given(from ? join(from->architectures, " ") : ""),
                if_given(to ? join(to->architectures, " ") : ""));
}

void compare_lists(ValueChanges& out, std::string_view name, const std::vector<std::string>& from,
                   const std::vector<std::string>& to) {
  // A word may hold what stands between words.
  const bool is_ambiguous = from != to && join(from, ", ") == join(to, ", ");
  const std::string_view between = is_ambiguous ? "` `" : ", ";
  compare_value(out, name, if_given(join(from, between)), if_given(join(to, between)));
}

std::optional<std::string> brief(const std::optional<Digest>& digest) {
  if (!digest) return std::nullopt;
  return digest->brief();
}

std::optional<std::string> brief_text(const std::string& hex) {
  if (hex.empty()) return std::nullopt;
  return hex.substr(0, Digest::of("").brief().size());
}

void compare_bases(ValueChanges& out, const std::optional<LockedBase>& from,
                   const std::optional<LockedBase>& to) {
  const auto compare = [&](std::string_view name, auto&& value) {
    compare_value(out, name, from ? value(*from) : std::nullopt, to ? value(*to) : std::nullopt);
  };
  const bool same_image = from && to && from->manifest == to->manifest;
  if (same_image && (from->layers != to->layers || from->config != to->config)) {
    compare_value(out, "base image", "its layers", "other layers");
  }
  compare("base image", [](const LockedBase& base) { return brief(base.manifest); });
  compare("interpreter", [](const LockedBase& base) { return if_given(base.interpreter); });
  compare("glibc", [](const LockedBase& base) { return if_given(base.glibc); });
}

/// `numpy` → `numpy>=2`; several of one package are joined.
std::map<std::string, std::string> by_package(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> found;
  for (const std::string& text : texts) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    std::string& all = found[one == nullptr ? text : one->normalised_name()];
    all += (all.empty() ? "" : ", ") + text;
  }
  return found;
}

/// What was built from source, and with what.
std::map<std::string, std::string> sources_in(const Lock& lock) {
  std::map<std::string, std::string> found;
  for (const LockedSource& source : lock.sources) {
    std::string with;
    for (const LockedWheel& wheel : lock.build_wheels) {
      const bool used = std::find(source.built_with.begin(), source.built_with.end(), wheel.file) !=
                        source.built_with.end();
      if (used) with += fmt::format(", {} {}", wheel.name, wheel.version);
    }
    found[source.name] = fmt::format("{} {}{}", source.shown(), source.digest.brief(), with);
  }
  return found;
}

void compare_requests(ValueChanges& out, const Request& from, const Request& to) {
  compare_value(out, "base", if_given(from.base), if_given(to.base));
  compare_value(out, "requested python", if_given(from.python), if_given(to.python));
  compare_value(out, "archive of python", brief_text(from.interpreter), brief_text(to.interpreter));
  compare_value(out, "framework", if_given(from.framework), if_given(to.framework));
  compare_value(out, "requested cuda", if_given(from.cuda), if_given(to.cuda));
  compare_value(out, "requested driver", if_given(from.driver), if_given(to.driver));
  compare_lists(out, "requested gpus", from.gpus, to.gpus);
  compare_lists(out, "requested libraries", from.libraries, to.libraries);
  compare_lists(out, "packages", from.packages, to.packages);
  compare_values(out, "requirement", by_package(from.requirements), by_package(to.requirements));
  compare_values(out, "constraint", by_package(from.constraints), by_package(to.constraints));
  compare_value(out, "hashes in `requirements`", brief(from.hashes), brief(to.hashes));
  compare_lists(out, "system", from.system, to.system);
  compare_values(out, "requested", shown_steering(from.steering), shown_steering(to.steering));
}

/// In one line, whatever the command is.
std::string shown_value_of(const RunStep& step) {
  std::string text;
  for (const char c : step.command.text) text += c == '\n' ? std::string("\\n") : std::string(1, c);
  if (step.network) text += ", with network";
  if (!step.secrets.empty()) text += ", with secrets " + join(step.secrets, ", ");
  return text;
}

void compare_runs(ValueChanges& out, const std::vector<RunStep>& from,
                  const std::vector<RunStep>& to) {
  for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i) {
    compare_value(out, "run step " + std::to_string(i + 1),
                  if_given(i < from.size() ? shown_value_of(from[i]) : ""),
                  if_given(i < to.size() ? shown_value_of(to[i]) : ""));
  }
}

std::map<std::string, std::string> shown_value_of(const std::vector<LockedData>& data) {
  std::map<std::string, std::string> all;
  for (const LockedData& one : data) {
    all[one.name] = one.digest + " at " + one.to;
    if (!one.stage.empty()) all[one.name] += ", stage " + one.stage;
  }
  return all;
}

void compare_settings(ValueChanges& out, const Settings& from, const Settings& to) {
  compare_value(out, "name", if_given(from.name), if_given(to.name));
  compare_value(out, "workdir", if_given(from.workdir), if_given(to.workdir));
  compare_lists(out, "command", from.command, to.command);
  compare_value(out, "bytecode", from.bytecode ? "true" : "false", to.bytecode ? "true" : "false");
  compare_value(out, "package sources in the image", brief(from.sources), brief(to.sources));
  compare_values(out, "env", from.env, to.env);
  compare_runs(out, from.run, to.run);
  compare_values(out, "data", shown_value_of(from.data), shown_value_of(to.data));
}

}  // namespace

std::string_view name_of(PackageChange::What what) {
  switch (what) {
    case ChangeWhat::added:
      return "added";
    case ChangeWhat::removed:
      return "removed";
    case ChangeWhat::upgraded:
      return "upgraded";
    case ChangeWhat::downgraded:
      return "downgraded";
    case ChangeWhat::other_bytes:
      return "other-bytes";
    case ChangeWhat::other_record:
      break;
  }
  return "other-record";
}

EnvironmentDiff diff_environments(const Environment& from, const Environment& to) {
  EnvironmentDiff out;
  compare_value(out.values, "python", if_given(python_in(from)), if_given(python_in(to)));
  compare_cuda(out.values, cuda_in(from), cuda_in(to));
  diff_all_packages(out, from, to);
  return out;
}

EnvironmentDiff diff_locks(const Lock& from, const Lock& to) {
  EnvironmentDiff out;
  ValueChanges& values = out.values;
  compare_value(values, "revision", std::to_string(from.revision), std::to_string(to.revision));
  compare_value(values, "platform", if_given(from.platform), if_given(to.platform));
  compare_value(values, "epoch", std::to_string(from.epoch), std::to_string(to.epoch));
  compare_requests(values, from.request, to.request);
  compare_settings(values, from.settings, to.settings);
  compare_value(values, "distribution", if_given(from.distribution), if_given(to.distribution));
  compare_value(values, "suite", if_given(from.suite), if_given(to.suite));
  compare_bases(values, from.base, to.base);
  compare_value(values, "python", if_given(from.python), if_given(to.python));
  compare_cuda(values, from.cuda, to.cuda);
  compare_values(values, "source of", sources_in(from), sources_in(to));
  diff_all_packages(out, environment_of(from), environment_of(to));
  return out;
}

Fetch fetch_between(const Lock& from, const Lock& to) {
  const Environment before = environment_of(from);
  const Environment after = environment_of(to);
  std::set<Digest> known;
  Fetch out;
  for (const auto* packages : {&before.debs, &before.wheels}) {
    for (const ListedPackage& one : *packages) known.insert(*one.digest);
  }
  for (const auto* packages : {&after.debs, &after.wheels}) {
    for (const ListedPackage& one : *packages) {
      if (!known.insert(*one.digest).second) continue;
      ++out.packages;
      out.bytes += *one.size_bytes;
    }
  }
  return out;
}

}  // namespace mlenv
