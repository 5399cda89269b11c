#include "builder/imports/import_trial.hpp"

#include <algorithm>
#include <chrono>
#include <regex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "builder/imports/import_place.hpp"
#include "builder/imports/top_levels.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using TrialClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPackageLimit{300};
constexpr std::chrono::minutes kTrialLimit{30};

std::vector<std::string> requested_packages(const Lock& lock) {
  std::vector<std::string> names;
  for (const LockedWheel& wheel : lock.wheels) {
    if (wheel.requested) names.push_back(wheel.name);
  }
  return names;
}

/// One package's imports.
struct PackageTrial {
  std::size_t imported = 0;
  std::vector<FailedImport> failed;
  bool skipped = false;  ///< all of the time was up before it began
};

class PackageImporter {
 public:
  explicit PackageImporter(const ImportPlace& place) : place_(place) {}

  PackageTrial tried(const ImportablePackage& package) const {
    PackageTrial trial;
    const auto start = TrialClock::now();
    trial.skipped = start >= end_;
    if (trial.skipped) return trial;
    for (const std::string& name : package.imports) {
      const auto used = std::chrono::ceil<std::chrono::seconds>(TrialClock::now() - start);
      if (used >= kPackageLimit) {
        add(package, name,
            {fmt::format("not tried: the package's imports before it took {} s", used.count()), {}},
            trial);
        break;
      }
      const auto limit =
          std::min(kImportLimit, std::max(kPackageLimit - used, std::chrono::seconds{1}));
      const ImportOutcome outcome = place_.once({name}, limit);
      if (outcome.error.empty() || comes_in_with_host(package, name, outcome, limit)) {
        ++trial.imported;
      } else if (is_of_extra(package, outcome)) {
        continue;
      } else {
        add(package, name, outcome, trial);
      }
    }
    return trial;
  }

 private:
  /// A part of a package beside others that only an extra makes work, which nobody asked for:
  /// `blackd` of black.
  static bool is_of_extra(const ImportablePackage& package, const ImportOutcome& outcome) {
    constexpr std::string_view kSays = "No module named '";
    std::string module = outcome.module;
    if (const std::size_t at = outcome.error.find(kSays);
        module.empty() && at != std::string::npos) {
      const std::size_t begin = at + kSays.size();
      module = outcome.error.substr(begin, outcome.error.find('\'', begin) - begin);
    }
    if (module.empty() || package.imports.size() < 2) return false;
    const std::string first = module.substr(0, module.find('.'));
    const std::string_view known = distribution_of_module(first);
    const std::string name = normalise_wheel_name(known.empty() ? std::string_view(first) : known);
    return std::find(package.of_extras.begin(), package.of_extras.end(), name) !=
           package.of_extras.end();
  }

  /// A part that another package brings in, and that brings that in itself, first finds itself
  /// half done: what counts is that it is there once the other is.
  bool comes_in_with_host(const ImportablePackage& package, const std::string& name,
                          const ImportOutcome& outcome, std::chrono::seconds limit) const {
    if (!outcome.module.empty() || says(outcome.error, "cannot open shared")) return false;
    const bool is_there_already = says(outcome.error, "already registered");
    return std::any_of(package.hosts.begin(), package.hosts.end(), [&](const std::string& host) {
      const ImportOutcome with = place_.once({host, name}, limit);
      return with.error.empty() || (is_there_already && with.error == outcome.error &&
                                    place_.once({host}, limit).error.empty());
    });
  }

  static void add(const ImportablePackage& package, const std::string& name,
                  const ImportOutcome& outcome, PackageTrial& trial) {
    FailedImport one{printable(package.name), printable(package.version), name, outcome.error, {},
                     outcome.module};
    find_cause(one);
    trial.failed.push_back(std::move(one));
  }

  const ImportPlace& place_;
  TrialClock::time_point end_ = TrialClock::now() + kTrialLimit;
};

[[noreturn]] void throw_out_of_time(const ImportTrial& trial, std::size_t skipped) {
  Error error =
      failure("imports-failed", "the imports of the image's Python packages took too long")
          .because(fmt::format("they had half an hour, after which {} had not begun",
                               counted(skipped, "package")));
  for (const FailedImport& one : trial.failed) {
    if (one.error.starts_with("no end")) {
      error.because(fmt::format("`import {}` ({}): {}", one.import, one.package, one.error));
    }
  }
  throw std::move(error).hint(
      "look at one that waits, with `mlenv run IMAGE -- python -c 'import …'`");
}

}  // namespace

void find_cause(FailedImport& failed) {
  static const std::regex library(
      "([A-Za-z0-9_.+-]+\\.so(?:\\.[0-9]+)*)(?:'|`)?: cannot open shared");
  static const std::regex quoted(
      "cannot load library '([^']+)'|[Ll]ibrary ['\"]?(lib[^'\" ]+\\.so[^'\" :]*)");
  std::smatch found;
  if (std::regex_search(failed.error, found, library)) {
    failed.library = found[1].str();
  } else if (std::regex_search(failed.error, found, quoted)) {
    failed.library = found[1].matched ? found[1].str() : found[2].str();
  }
}

ImportTrial try_imports(const Image& image, const Lock& lock, Store& store, Progress& progress) {
  if (lock.wheels.empty()) return {};
  ImportPlace place{image, store, progress};
  const std::vector<ImportablePackage> packages =
      importable_packages(place.stack(), requested_packages(lock));
  Activity activity{progress, "import its packages", packages.size(), "packages"};
  const PackageImporter importer{place};
  std::vector<PackageTrial> tried(packages.size());
  place.pool().for_each(packages.size(), [&](std::size_t i) {
    tried[i] = importer.tried(packages[i]);
    activity.advance(1);
  });
  ImportTrial trial;
  std::size_t skipped = 0;
  for (PackageTrial& one : tried) {
    trial.imported += one.imported;
    if (one.skipped) ++skipped;
    for (FailedImport& failed : one.failed) {
      (wants_driver(failed) ? trial.without_gpu : trial.failed).push_back(std::move(failed));
    }
  }
  if (skipped > 0) throw_out_of_time(trial, skipped);
  activity.result(counted(trial.imported, "import"));
  return trial;
}

}  // namespace mlenv
