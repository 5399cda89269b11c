#include "builder/imports/import_place.hpp"

#include <algorithm>

#include "builder/run/run_step.hpp"
#include "images/inspect/software.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// A framework takes a gigabyte while it is imported.
constexpr unsigned kMostAtOnce = 8;

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

}  // namespace

ImportPlace::ImportPlace(const Image& image, Store& store, Progress& progress)
    : scratch_(store.scratch()),
      pool_(std::min(usable_processors(), kMostAtOnce)),
      below_(layer_trees(image.layers, store, pool_, progress)),
      lent_(scratch_.path() / "lent", below_),
      env_(importers_environment(image)) {
  lent_.add_folder("tmp");
  lent_.add_folder("root");
  lent_.offer("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
  lent_.finish();
}

ImportOutcome ImportPlace::once(const std::vector<std::string>& names,
                                std::chrono::seconds limit) const {
  const TemporaryFolder folder{scratch_.path(), "import-"};
  return import_once(names, lent_.stacked(folder.path()), env_, limit);
}

bool wants_driver(const FailedImport& failed) {
  return is_from_driver(failed.library) || says(failed.error, "libcuda.so") ||
         says(failed.error, "CUDA driver");
}

}  // namespace mlenv
