#include "builder/imports/import_trial.hpp"

#include <fcntl.h>
#include <algorithm>
#include <chrono>
#include <regex>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/small_file.hpp"
#include "builder/imports/import_program.hpp"
#include "builder/run/layer_stack.hpp"
#include "builder/run/lent_tree.hpp"
#include "builder/run/run_step.hpp"
#include "images/inspect/software.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kImporter = "/opt/venv/bin/python";
constexpr std::size_t kMostAnswerBytes = std::size_t{16} << 20U;
constexpr std::size_t kLongestError = 300;
constexpr std::chrono::minutes kTrialDeadline{30};

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

std::string text_member(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  return found == line.end() || !found->is_string() ? std::string{} : found->get<std::string>();
}

/// Nothing of a build's machine has them.
bool wants_driver(const FailedImport& failed) {
  return is_from_driver(failed.library) || says(failed.error, "libcuda.so") ||
         says(failed.error, "CUDA driver");
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

ImportTrial read_import_trial(std::string_view answer, const std::string& shown) {
  ImportTrial trial;
  for (const std::string_view text : split(answer, '\n')) {
    if (text.empty()) continue;
    const auto line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || text_member(line, "import").empty()) {
      throw failure("imports-failed", "`{}` does not say what it imported", shown)
          .because(printable(text.substr(0, kLongestError)));
    }
    FailedImport one{text_member(line, "package"),
                     text_member(line, "version"),
                     text_member(line, "import"),
                     printable(text_member(line, "error")),
                     {},
                     text_member(line, "module")};
    if (one.error.empty()) {
      ++trial.imported;
      continue;
    }
    if (one.error.size() > kLongestError) {
      one.error = printable(one.error.substr(0, kLongestError)) + " …";
    }
    find_cause(one);
    (wants_driver(one) ? trial.without_gpu : trial.failed).push_back(std::move(one));
  }
  return trial;
}

ImportTrial try_imports(const Image& image, const Lock& lock, Store& store, Progress& progress) {
  if (lock.wheels.empty()) return {};
  Activity activity{progress, "import its packages", 0, ""};
  const TemporaryFolder scratch = store.scratch();
  Pool pool;
  LayerStack below{layer_trees(image.layers, store, pool, progress)};
  LentTree lent{scratch.path() / "lent", below};
  lent.add_folder("tmp");
  lent.add_folder("root");
  lent.offer("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
  lent.finish();
  const fs::path answer = scratch.path() / "answer";
  const Fd out = open_file(answer, O_WRONLY | O_CREAT | O_TRUNC);
  const Fd nowhere = open_file("/dev/null", O_WRONLY);
  SandboxCommand command;
  command.overlay = lent.stacked(scratch.path());
  command.argv = {std::string(kImporter), "-c", std::string(import_program())};
  for (std::string& name : requested_packages(lock)) command.argv.push_back(std::move(name));
  command.env = importers_environment(image);
  command.folder = "/tmp";
  command.stdout_fd = out.get();
  command.stderr_fd = nowhere.get();
  Sandbox sandbox{command};
  const std::optional<Exit> exit = sandbox.wait(kTrialDeadline);
  if (!exit) {
    throw failure("imports-failed", "the imports of the image's Python packages did not end")
        .because("they had half an hour")
        .hint("look for the one that waits, with `mlenv run IMAGE -- python -c 'import …'`");
  }
  ImportTrial trial =
      read_import_trial(read_small_file(answer, kMostAnswerBytes), "the image's Python");
  if (exit->code != 0) {
    throw failure("imports-failed", "the image's Python did not get through its packages")
        .because(fmt::format("{} with {}", exit->signalled ? "a signal ended it," : "it ended",
                             exit->code));
  }
  activity.result(counted(trial.imported, "import"));
  return trial;
}

}  // namespace mlenv
