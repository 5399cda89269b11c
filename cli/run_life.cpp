#include "cli/run_life.hpp"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/duration.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/quick_runtime.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "runner/local/detached.hpp"
#include "runner/local/option_words.hpp"
#include "runner/local/shell.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

constexpr double kMilliseconds = 1000;

int signal_of(const std::string& text) {
  const std::optional<int> number = parse_signal(text);
  if (number) return *number;
  throw usage_error("usage", "`--stop-signal {}` is no signal", text)
      .hint("write a name or a number: `INT`, `SIGUSR1`, `10`");
}

RestartPolicy restart_of(const std::string& text) {
  const std::optional<RestartPolicy> policy = RestartPolicy::parse(text);
  if (policy) return *policy;
  throw usage_error("usage", "`--restart {}` is no policy", text)
      .hint("no, on-failure, on-failure:N, always, unless-stopped");
}

void check_name(const std::string& name) {
  if (is_run_name(name)) return;
  throw usage_error("usage", "`--name {}` cannot be a run's name", name)
      .because(name == "last" ? "`last` is the newest run"
                              : "a name has letters, digits, `_`, `.` and `-`, and begins with one "
                                "of the former two")
      .hint("choose another");
}

}  // namespace

std::chrono::milliseconds duration_of(std::string_view option, const std::string& text) {
  const std::optional<std::chrono::milliseconds> time = parse_duration(text);
  if (time) return *time;
  throw usage_error("usage", "`{} {}` is no length of time", option, text)
      .hint("write a number and a unit: `30s`, `10m`, `2h`, `1h30m`, `1d`");
}

void add_life_options(CLI::App& app, LifeWords& words) {
  app.add_option("--name", words.name, "what it is called as long as it runs");
  app.add_flag("-d,--detach", words.detach, "run it in the background, and print its id");
  app.add_option("--timeout", words.timeout, "end it after so long: `90s`, `12h`; status 124")
      ->type_name("DURATION");
  app.add_option("--restart", words.restart,
                 "again when it ends: no, on-failure[:N], always, unless-stopped")
      ->type_name("POLICY");
  app.add_option("--stop-signal", words.stop_signal,
                 "what ends it on `stop` and `--timeout`; by default TERM")
      ->type_name("SIGNAL");
  app.add_option("--stop-timeout", words.stop_timeout,
                 "from that signal to SIGKILL; by default 10s")
      ->type_name("DURATION");
  app.add_option("--log-size", words.log_size,
                 "keep so much output of a run in the background; by default 256M")
      ->type_name("SIZE");
  app.add_flag("--rm", words.remove, "as it is without --keep: what it writes is thrown away");
}

Life parse_life(const LifeWords& words) {
  Life life;
  life.detach = words.detach;
  if (!words.name.empty()) check_name(words.name);
  life.name = words.name;
  if (!words.timeout.empty()) {
    life.run.timeout = duration_of("--timeout", words.timeout);
    if (life.run.timeout->count() == 0) life.run.timeout.reset();  // as timeout(1) has it
  }
  if (!words.stop_signal.empty()) life.run.stop_signal = signal_of(words.stop_signal);
  if (!words.stop_timeout.empty()) {
    life.run.grace = duration_of("--stop-timeout", words.stop_timeout);
  }
  life.run.restart = restart_of(words.restart);
  life.most_log_bytes = parse_size("--log-size", words.log_size);
  return life;
}

void record_life(const Life& life, RunStart& start) {
  if (!life.name.empty()) start.name = life.name;
  start.detached = life.detach;
  if (life.run.timeout) {
    start.timeout_seconds = static_cast<double>(life.run.timeout->count()) / kMilliseconds;
  }
  start.restart = life.run.restart.text;
}

void answer_started(const Ui& ui, const BegunRun& run) {
  const auto or_null = [](const std::optional<std::string>& text) {
    return text ? nlohmann::json(*text) : nlohmann::json();
  };
  ui.answer(canonical({{"schema", "mlenv.run-started/1"},
                       {"id", run.id.empty() ? nlohmann::json() : nlohmann::json(run.id)},
                       {"name", or_null(run.name)},
                       {"url", or_null(run.url)}}));
}

int run_detached(Ui& ui, LocalRun run, RunStart start, const Life& life,
                 const std::function<std::string(const std::string& id)>& url) {
  // The supervisor's folder is another one.
  if (run.runtime.find('/') != std::string::npos) run.runtime = fs::absolute(run.runtime).string();
  DetachedRun request;
  choose_runtime(run);
  request.run = std::move(run);
  request.start = std::move(start);
  request.store = fs::absolute(ui.store().root());
  request.most_log_bytes = life.most_log_bytes;
  request.failure_status = ui.failure_status.value_or(1);
  const StartedRun started = start_detached_run(request);
  if (started.over) return started.over->exit.code;
  if (!ui.options.json) ui.answer(started.id);
  BegunRun begun{started.id, std::nullopt, std::nullopt};
  if (!life.name.empty()) begun.name = life.name;
  if (url) begun.url = url(started.id);
  if (ui.options.json) {
    answer_started(ui, begun);
  } else if (begun.url) {
    ui.say(*begun.url);
  }
  return 0;
}

std::string best_shell(const std::vector<fs::path>& trees) {
  return mlenv::best_shell([&](const std::string& path) {
    return std::any_of(trees.begin(), trees.end(), [&](const fs::path& tree) {
      std::error_code error;
      return fs::exists(fs::symlink_status(tree / path.substr(1), error));
    });
  });
}

}  // namespace mlenv::cli
