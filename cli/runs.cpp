#include <algorithm>
#include <chrono>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/age.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_environment.hpp"
#include "cli/run_notebook.hpp"
#include "cli/run_record.hpp"
#include "cli/running.hpp"
#include "cli/settings.hpp"
#include "cli/slurm_jobs.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"
#include "runner/record/kept_layers.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {
namespace {

using nlohmann::json;

constexpr int kMostRuns = 1000000000;

KeptLayers kept_layers() { return KeptLayers{store_folder()}; }

struct Filter {
  std::string image;
  std::string state;
  std::string matrix;
  std::size_t newest = 0;  ///< 0: all
  bool names = false;      ///< alone, or ids where there is none
  bool queued = false;     ///< those that wait for others, or that Slurm has not begun, too
  bool ranks = false;      ///< those of jobs on several nodes, too
};

/// `jax-cpu` is `jax-cpu:latest`; a digest may be its beginning, with `sha256:` or without.
bool is_of_image(const RunStart& start, std::string_view asked) {
  constexpr std::string_view kLatest = ":latest";
  constexpr std::string_view kAlgorithm = "sha256:";
  constexpr std::size_t kFewestDigits = 6;
  const auto bare = [&](std::string_view name) {
    return name.ends_with(kLatest) ? name.substr(0, name.size() - kLatest.size()) : name;
  };
  if (asked.empty() || bare(start.image.name) == bare(asked)) return true;
  if (asked.starts_with(kAlgorithm)) asked.remove_prefix(kAlgorithm.size());
  return asked.size() >= kFewestDigits &&
         std::string_view(start.image.digest)
             .starts_with(std::string(kAlgorithm) + std::string(asked));
}

/// Its id, or the beginning or end of it.
bool is_of_matrix(const RunStart& start, std::string_view asked) {
  if (asked.empty()) return true;
  if (!start.variation) return false;
  const std::string_view id = start.variation->matrix;
  constexpr std::size_t kFewestLetters = 4;
  return id == asked ||
         (asked.size() >= kFewestLetters && (id.starts_with(asked) || id.ends_with(asked)));
}

/// Newest first. What cannot be read is told of, and left out.
std::vector<RunRecord> runs_chosen(const Filter& filter, const Ui& ui) {
  const RunRecords all = run_records();
  std::vector<std::string> ids = all.ids();
  std::reverse(ids.begin(), ids.end());
  std::vector<RunRecord> found;
  for (const std::string& id : ids) {
    if (filter.newest != 0 && found.size() == filter.newest) break;
    try {
      RunRecord record = all.read_brief(id);
      const bool wanted = (filter.ranks || !record.start.job) &&
                          is_of_image(record.start, filter.image) &&
                          is_of_matrix(record.start, filter.matrix) &&
                          (filter.state.empty() || record.state == filter.state ||
                           (filter.queued && record.state == "queued"));
      if (wanted) found.push_back(std::move(record));
    } catch (const Error& error) {
      ui.say(fmt::format("left out: {}", error.what()));
    }
  }
  return found;
}

/// `with_values`: variations of a matrix by their values, which are what tells them apart.
void print_table(const std::vector<RunRecord>& found, bool with_values, const Ui& ui) {
  std::vector<RunLine> lines = {
      {"RUN", "NAME", "STARTED", "STATE", "TOOK", "IMAGE", "COMMAND", "VALUES"}};
  for (const RunRecord& record : found) lines.push_back(run_line(record));
  const auto width = [&](std::string RunLine::*column) {
    std::size_t most = 0;
    for (const RunLine& line : lines) most = std::max(most, (line.*column).size());
    return most;
  };
  const std::size_t id = width(&RunLine::id);
  const std::size_t name = width(&RunLine::name);
  const std::size_t started = width(&RunLine::started);
  const std::size_t state = width(&RunLine::state);
  const std::size_t took = width(&RunLine::took);
  const std::size_t image = width(&RunLine::image);
  for (const RunLine& line : lines) {
    ui.answer(fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {:>{}}  {:<{}}  {}", line.id, id,
                          line.name, name, line.started, started, line.state, state, line.took,
                          took, line.image, image, with_values ? line.values : line.command));
  }
}

int list_command(const Filter& filter, Ui& ui) {
  std::vector<RunRecord> found = runs_chosen(filter, ui);
  if (filter.queued) {
    for (RunRecord& job : waiting_jobs(run_records())) {
      std::erase_if(found, [&](const RunRecord& one) { return one.start.id == job.start.id; });
      found.push_back(std::move(job));
    }
  }
  if (filter.names) {
    for (const RunRecord& record : found) {
      ui.answer_exactly(record.start.name.value_or(record.start.id));
    }
    return 0;
  }
  if (ui.options.json) {
    json items = json::array();
    for (const RunRecord& record : found) items.push_back(json::parse(render_run(record)));
    ui.answer(canonical({{"schema", "mlenv.runs/1"}, {"runs", items}}));
  } else if (!found.empty()) {
    print_table(found, !filter.matrix.empty(), ui);
  }
  return 0;
}

int show_run(const std::string& word, Ui& ui) {
  const RunRecords all = run_records();
  RunRecord record = all.read(all.find(word));
  if (ui.options.json) {
    (void)add_environment(ui, record);  // it stays unknown where the image is gone
    ui.answer(render_run(record));
    return 0;
  }
  std::optional<std::uint64_t> kept;
  if (const auto& layer = record.start.layer; layer && layer->kept) {
    kept = kept_layers().size_bytes(layer->id);
  }
  for (const std::string& line : run_text(record, kept)) ui.answer(line);
  return 0;
}

int url_command(const std::string& word, Ui& ui) {
  const BegunRun run = run_with_notebook(word);
  if (ui.options.json) {
    answer_started(ui, run);
  } else {
    ui.answer(*run.url);
  }
  return 0;
}

/// With layers that nothing leads to any more.
void answer_removed(const std::vector<std::string>& removed, const Ui& ui) {
  const auto [layers, staying] = kept_layers().remove_unnamed();
  for (const std::string& line : staying) ui.say("warning: " + line);
  if (ui.options.json) {
    ui.answer(
        canonical({{"schema", "mlenv.runs-removed/1"}, {"removed", removed}, {"layers", layers}}));
    return;
  }
  const std::string with =
      layers > 0 ? fmt::format(", with {}", counted(layers, "kept layer")) : "";
  ui.say(fmt::format("{} taken away{}", counted(removed.size(), "record"), with));
}

int remove_command(const std::vector<std::string>& words, Ui& ui) {
  const RunRecords all = run_records();
  std::vector<std::string> ids;
  for (const std::string& word : words) {
    const std::string id = all.find(word);
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  for (const std::string& id : ids) {
    if (!all.remove(id)) {
      throw refusal("run-goes-on", "run `{}` goes on, and its record with it", id)
          .hint("take the record away when the run has ended");
    }
  }
  answer_removed(ids, ui);
  return 0;
}

struct Pruning {
  std::optional<std::size_t> keep;
  std::string older_than;
  bool kept = false;  ///< those, too, whose runs kept what they wrote
};

/// One that cannot be read is told of, and stays.
bool started_before(const RunRecords& all, const std::string& id, std::chrono::seconds age,
                    const Ui& ui) {
  try {
    const auto started = parse_utc(all.read_brief(id).start.started);
    return started && std::chrono::system_clock::now() - *started > age;
  } catch (const Error& error) {
    ui.say(fmt::format("left as it is: {}", error.what()));
    return false;
  }
}

/// One that cannot be read kept nothing that could be found again.
bool keeps_layer(const RunRecords& all, const std::string& id) {
  try {
    const auto layer = all.read_brief(id).start.layer;
    return layer && layer->kept;
  } catch (const Error&) {
    return false;
  }
}

int prune_command(const Pruning& pruning, Ui& ui) {
  if (!pruning.keep && pruning.older_than.empty()) {
    throw usage_error("usage", "`runs prune` is not told which records to take away")
        .hint("`--older-than 30d`, or `--keep 100` for the newest hundred");
  }
  const std::optional<std::chrono::seconds> age =
      pruning.older_than.empty() ? std::nullopt : std::optional(age_of(pruning.older_than, "30d"));
  const RunRecords all = run_records();
  const std::vector<std::string> ids = all.ids();
  std::vector<std::string> removed;
  std::size_t spared = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool beyond = !pruning.keep || ids.size() - i > *pruning.keep;
    if (!beyond || (age && !started_before(all, ids[i], *age, ui))) continue;
    if (!pruning.kept && keeps_layer(all, ids[i])) {
      ++spared;
      continue;
    }
    if (all.remove(ids[i])) removed.push_back(ids[i]);
  }
  all.sweep();
  answer_removed(removed, ui);
  if (spared > 0) {
    ui.say(fmt::format("{} with a kept layer left; `--kept` takes them away, too",
                       counted(spared, "record")));
  }
  return 0;
}

}  // namespace

Action declare_ps(CLI::App& app) {
  auto all = std::make_shared<bool>(false);
  auto filter = std::make_shared<Filter>();
  app.add_flag("-a,--all", *all, "those that have ended, too: `mlenv runs`");
  app.add_flag("--names", filter->names, "names alone, or ids where there is none");
  app.footer("example: mlenv ps");
  return [=](Ui& ui) {
    filter->queued = true;
    if (!*all) filter->state = "running";
    return list_command(*filter, ui);
  };
}

Action declare_runs(CLI::App& app) {
  auto action = std::make_shared<Action>();
  auto filter = std::make_shared<Filter>();
  auto words = std::make_shared<std::vector<std::string>>();
  auto pruning = std::make_shared<Pruning>();
  app.require_subcommand(0, 1);
  *action = [filter](Ui& ui) { return list_command(*filter, ui); };
  take_word_of(app.add_option("--image", filter->image, "runs of this image alone"),
               WordKind::image);
  take_one_of(app.add_option("--state", filter->state, "runs that came to this alone"),
              {"queued", "running", "done", "failed", "killed", "refused", "lost"});
  app.add_option("--matrix", filter->matrix, "variations of this matrix alone, by its id");
  app.add_option("-n,--newest", filter->newest, "so many, the newest")
      ->check(CLI::Range(1, kMostRuns));
  app.add_flag("--names", filter->names, "names alone, or ids where there is none");
  CLI::App* show = app.add_subcommand("show", "all that is known of a run");
  take_word_of(show->add_option("RUN", *words, "an id, its beginning or end, a name, or `last`")
                   ->required()
                   ->expected(1),
               WordKind::run);
  show->callback([=] { *action = [words](Ui& ui) { return show_run(words->front(), ui); }; });
  CLI::App* url = app.add_subcommand("url", "the address of a run's notebook, with its token");
  take_word_of(url->add_option("RUN", *words, "an id, its beginning or end, a name, or `last`")
                   ->required()
                   ->expected(1),
               WordKind::running);
  url->callback([=] { *action = [words](Ui& ui) { return url_command(words->front(), ui); }; });
  CLI::App* remove = app.add_subcommand("rm", "take records away");
  take_word_of(remove->add_option("RUN", *words, "ids, their beginnings or ends, names, or `last`")
                   ->required(),
               WordKind::run);
  remove->callback([=] { *action = [words](Ui& ui) { return remove_command(*words, ui); }; });
  CLI::App* prune = app.add_subcommand("prune", "take old records away");
  prune->add_option("--keep", pruning->keep, "but for so many of the newest")
      ->check(CLI::Range(0, kMostRuns));
  prune->add_option("--older-than", pruning->older_than, "those of runs that began before: `30d`");
  prune->add_flag("--kept", pruning->kept, "those, too, whose runs kept what they wrote");
  prune->callback([=] { *action = [pruning](Ui& ui) { return prune_command(*pruning, ui); }; });
  app.footer("example: mlenv runs show last");
  return [action](Ui& ui) { return (*action)(ui); };
}

}  // namespace mlenv::cli
