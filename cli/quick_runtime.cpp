#include "cli/quick_runtime.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/settings.hpp"
#include "runner/facts/remembered.hpp"
#include "runner/local/own_groups.hpp"

namespace mlenv::cli {
namespace {

FactSources remembering() {
  FactSources live = host_sources("/", "/tmp");
  try {
    return with_remembered_versions(live, OwnFolder{versions_folder()});
  } catch (const Error& error) {
    log::debug("versions are not remembered: {}", error.what());
    return live;
  }
}

}  // namespace

fs::path versions_folder() { return cache_folder() / "versions"; }

void choose_runtime(LocalRun& run) {
  if (!run.runtime.empty()) return;
  run.runtime = quick_runtime(remembering(), ::geteuid() == 0, run.options.limits);
}

}  // namespace mlenv::cli
