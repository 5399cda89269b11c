#pragma once
// The words of `mlenv run` about its life: name, background, time, restarts.
#include <cstdint>
#include <functional>
#include <string>

#include "runner/local/life.hpp"
#include "runner/local/run.hpp"
#include "runner/record/run_record.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

class Ui;

struct LifeWords {
  std::string name;
  bool detach = false;
  std::string timeout;
  std::string restart = "no";
  std::string stop_signal;
  std::string stop_timeout;
  std::string log_size = "256M";
  bool remove = false;  ///< accepted for habit's sake: what a run writes is always thrown away
};
void add_life_options(CLI::App& app, LifeWords& words);

/// The same, checked.
struct Life {
  RunLife run;
  std::string name;  ///< empty: none
  bool detach = false;
  std::uint64_t most_log_bytes = 0;
};
/// Throws `usage`.
Life parse_life(const LifeWords& words);
/// What the record says of it.
void record_life(const Life& life, RunStart& start);

/// A run that has begun, as it is answered.
struct BegunRun {
  std::string id;                   ///< empty: it is not recorded
  std::optional<std::string> name;  ///< nothing: none
  std::optional<std::string> url;   ///< of what it serves
};
/// mlenv.run-started/1 on one line.
void answer_started(const Ui& ui, const BegunRun& run);

/// Runs it in the background and answers its id; the status. `url` waits for what the run serves;
/// empty: nothing.
int run_detached(Ui& ui, LocalRun run, RunStart start, const Life& life,
                 const std::function<std::string(const std::string& id)>& url = {});

/// Of an option: throws `usage` for what is no duration.
std::chrono::milliseconds duration_of(std::string_view option, const std::string& text);

/// The best shell that an image of these unpacked layers has.
std::string best_shell(const std::vector<fs::path>& trees);

}  // namespace mlenv::cli
