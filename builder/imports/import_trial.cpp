#include "builder/imports/import_trial.hpp"

#include <algorithm>
#include <chrono>
#include <regex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/pool.hpp"
#include "base/printable.hpp"
#include "builder/imports/import_once.hpp"
#include "builder/imports/top_levels.hpp"
#include "builder/run/layer_stack.hpp"
#include "builder/run/lent_tree.hpp"
#include "builder/run/run_step.hpp"
#include "images/inspect/software.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using TrialClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kImportLimit{120};
constexpr std::chrono::seconds kPackageLimit{300};
constexpr std::chrono::minutes kTrialLimit{30};
/// A framework takes a gigabyte while it is imported.
constexpr unsigned kMostAtOnce = 8;

std::vector<std::string> requested_packages(const Lock& lock) {
  std::vector<std::string> names;
  for (const LockedWheel& wheel : lock.wheels) {
    if (wheel.requested) names.push_back(wheel.name);
  }
  return names;
}

std::vector<std::string> importers_environment(const Image& image) {
  std::vector<std::string> env = image.settings.env;
  // As an ordinary program has it, but nothing is left behind and nothing asks for a display.
  for (const std::string_view one :
       {"HOME=/root", "USER=root", "TERM=dumb", "TZ=UTC", "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONWARNINGS=ignore", "MPLBACKEND=agg", "HF_HUB_OFFLINE=1"}) {
    env.emplace_back(one);
  }
  return env;
}

/// Nothing of a build's machine has them.
bool wants_driver(const FailedImport& failed) {
  return is_from_driver(failed.library) || says(failed.error, "libcuda.so") ||
         says(failed.error, "CUDA driver");
}

/// One package's imports.
struct PackageTrial {
  std::size_t imported = 0;
  std::vector<FailedImport> failed;
  bool skipped = false;  ///< all of the time was up before it began
};

class PackageImporter {
 public:
  PackageImporter(const LentTree& tree, const Image& image, fs::path scratch)
      : tree_(tree), env_(importers_environment(image)), scratch_(std::move(scratch)) {}

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
      const TemporaryFolder folder{scratch_, "import-"};
      const ImportOutcome outcome = import_once(
          name, tree_.stacked(folder.path()), env_,
          std::min(kImportLimit, std::max(kPackageLimit - used, std::chrono::seconds{1})));
      if (outcome.error.empty()) {
        ++trial.imported;
      } else {
        add(package, name, outcome, trial);
      }
    }
    return trial;
  }

 private:
  static void add(const ImportablePackage& package, const std::string& name,
                  const ImportOutcome& outcome, PackageTrial& trial) {
    FailedImport one{printable(package.name), printable(package.version), name, outcome.error, {},
                     outcome.module};
    find_cause(one);
    trial.failed.push_back(std::move(one));
  }

  const LentTree& tree_;
  std::vector<std::string> env_;
  fs::path scratch_;
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
  const TemporaryFolder scratch = store.scratch();
  Pool pool{std::min(usable_processors(), kMostAtOnce)};
  LayerStack below{layer_trees(image.layers, store, pool, progress)};
  const std::vector<ImportablePackage> packages =
      importable_packages(below, requested_packages(lock));
  Activity activity{progress, "import its packages", packages.size(), "packages"};
  LentTree lent{scratch.path() / "lent", below};
  lent.add_folder("tmp");
  lent.add_folder("root");
  lent.offer("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
  lent.finish();
  const PackageImporter importer{lent, image, scratch.path()};
  std::vector<PackageTrial> tried(packages.size());
  pool.for_each(packages.size(), [&](std::size_t i) {
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
