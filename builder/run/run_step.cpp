#include "builder/run/run_step.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "builder/key_text.hpp"
#include "builder/run/change_layer.hpp"
#include "builder/run/lent_tree.hpp"
#include "builder/run/run_output.hpp"
#include "images/unpack.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::hours kStepDeadline{24};
constexpr std::size_t kTitleLength = 60;

/// Variables that a step has, the image's over those of the machine.
std::vector<std::string> environment(const RunJob& job, const std::vector<std::string>& machine) {
  std::map<std::string, std::string> all = {{"HOME", "/root"},
                                            {"USER", "root"},
                                            {"LOGNAME", "root"},
                                            {"SHELL", "/bin/sh"},
                                            {"TERM", "dumb"},
                                            {"TZ", "UTC"},
                                            {"DEBIAN_FRONTEND", "noninteractive"},
                                            // Dates, and orders that differ from run to run.
                                            {"PYTHONDONTWRITEBYTECODE", "1"},
                                            {"PYTHONHASHSEED", "0"},
                                            {"SOURCE_DATE_EPOCH", std::to_string(job.epoch)}};
  for (const std::vector<std::string>* list : {&machine, &job.env}) {
    for (const std::string& text : *list) {
      const std::size_t equals = text.find('=');
      all[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  std::vector<std::string> env;
  for (const auto& [name, value] : all) env.push_back(fmt::format("{}={}", name, value));
  return env;
}

std::string place_of(std::size_t number, const RunOptions& options) {
  return number < options.places.size() ? options.places[number] : "";
}

class StepRun {
 public:
  StepRun(const RunJob& job, Store& store, Pool& pool, Progress& progress)
      : job_(job),
        store_(store),
        pool_(pool),
        progress_(progress),
        scratch_(store.scratch()),
        below_(layer_trees(job.below, store, pool, progress)),
        lent_(scratch_.path() / "lent", below_) {
    for (const std::string& id : job.step.secrets) secrets_[id] = job.options.secrets.at(id);
  }

  Layer run() {
    const std::vector<std::string> machine = prepare();
    const Redaction redact{secrets_};
    const RecordedRun result = execute(machine, redact);
    if (result.exit.code != 0) {
      throw step_error({fmt::format("`run` step {}, `{}`,", job_.number + 1, shown_command()),
                        place_of(job_.number, job_.options), result.exit, redact(result.output),
                        job_.step.network});
    }
    const Activity activity{progress_, "pack what it changed", 0, ""};
    const fs::path upper = scratch_.path() / "overlay/upper";
    const Changes changes{below_,
                          upper,
                          job_.owners.owners(),
                          result.owners,
                          job_.owners.capabilities(),
                          result.capabilities,
                          job_.epoch,
                          lent_.lent(),
                          secrets_};
    return while_doing(fmt::format("keeping what `run` step {} changed", job_.number + 1), [&] {
      return make_change_layer(changes, store_, pool_, run_title(job_.step));
    });
  }

 private:
  std::string shown_command() const { return run_title(job_.step).substr(5); }

  /// Makes the lent tree; the machine's variables.
  std::vector<std::string> prepare() {
    lent_.disown_others(job_.owners);
    lent_.add_folder(job_.workdir.substr(1));
    std::vector<std::string> variables;
    make_folders(machine_folder());
    if (job_.step.network && job_.options.lend) {
      lent_.lend(scratch_.path() / "view", [&](const fs::path& view) {
        variables = job_.options.lend(view, machine_folder());
      });
    } else {
      lent_.offer("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
    }
    lent_.finish();
    return variables;
  }

  fs::path machine_folder() const { return scratch_.path() / "machine"; }

  RecordedRun execute(const std::vector<std::string>& machine, const Redaction& redact) {
    SandboxCommand command;
    command.argv = {"/bin/sh", "-euc", job_.step.command.text};
    command.env = environment(job_, machine);
    command.folder = job_.workdir;
    command.network = job_.step.network;
    command.secrets = secrets_;
    command.overlay = lent_.stacked(scratch_.path());
    if (job_.step.network && job_.options.lend) {
      command.mounts.push_back({machine_folder(), job_.options.lent_at, true});
    }
    Activity activity{progress_, run_title(job_.step), 0, "lines"};
    std::string line;
    return run_recorded(command, job_.owners.owners(), kStepDeadline, [&](std::string_view text) {
      activity.advance(static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')));
      if (log::enabled()) log_lines(line, text, redact);
    });
  }

  static void log_lines(std::string& line, std::string_view text, const Redaction& redact) {
    line += text;
    for (std::size_t end = line.find('\n'); end != std::string::npos; end = line.find('\n')) {
      log::debug("run: {}", redact(line.substr(0, end)));
      line.erase(0, end + 1);
    }
  }

  const RunJob& job_;
  Store& store_;
  Pool& pool_;
  Progress& progress_;
  TemporaryFolder scratch_;
  LayerStack below_;
  LentTree lent_;
  std::map<std::string, std::string> secrets_;
};

}  // namespace

std::vector<fs::path> layer_trees(const std::vector<Layer>& layers, Store& store, Pool& pool,
                                  Progress& progress) {
  std::vector<fs::path> trees(layers.size());
  pool.for_each(layers.size(),
                [&](std::size_t i) { trees[i] = unpack_layer(store, layers[i], progress); });
  std::set<fs::path> seen;
  std::vector<fs::path> kept;
  for (auto tree = trees.rbegin(); tree != trees.rend(); ++tree) {
    if (seen.insert(*tree).second) kept.push_back(*tree);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

std::string run_title(const RunStep& step) {
  const std::string_view text = trim(step.command.text);
  const std::string_view first = trim(text.substr(0, text.find('\n')));
  if (first.size() == text.size() && first.size() <= kTitleLength)
    return fmt::format("run: {}", first);
  std::size_t length = std::min(first.size(), kTitleLength);
  while (length > 0 && length < first.size() && (first[length] & 0xC0) == 0x80) --length;
  return fmt::format("run: {} …", first.substr(0, length));
}

Digest run_key(const RunJob& job) {
  KeyText key{"run"};
  key.add("epoch", job.epoch);
  for (const Layer& layer : job.below) key.add("below", layer.diff_id.str());
  key.add("command", job.step.command.text);
  for (const std::string& variable : job.env) key.add("env", variable);
  key.add("workdir", job.workdir);
  key.add("network", static_cast<std::int64_t>(job.step.network));
  for (const std::string& secret : job.step.secrets) key.add("secret", secret);
  return key.digest();
}

void require_secrets(const RunStep& step, std::size_t number, const RunOptions& options) {
  for (const std::string& id : step.secrets) {
    if (options.secrets.contains(id)) continue;
    Error error =
        usage_error("no-secret", "a `run` step needs the secret `{}`, and none was given", id);
    const std::string place = place_of(number, options);
    if (!place.empty()) error.because("the step stands in " + place);
    throw std::move(error).hint(
        fmt::format("`mlenv build --secret id={0},src=FILE`, or `id={0},env=VARIABLE`", id));
  }
}

Layer run_step(const RunJob& job, Store& store, Pool& pool, Progress& progress) {
  require_secrets(job.step, job.number, job.options);
  return StepRun{job, store, pool, progress}.run();
}

}  // namespace mlenv
