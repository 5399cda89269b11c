#include "cli/compare.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/own_entries.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "cli/answer_file.hpp"
#include "cli/command_tree.hpp"
#include "cli/compare_bench.hpp"
#include "cli/compare_text.hpp"
#include "cli/running.hpp"
#include "cli/settings.hpp"
#include "cli/usage.hpp"
#include "runner/compare/cost.hpp"
#include "runner/compare/html.hpp"
#include "runner/compare/markdown.hpp"
#include "runner/compare/merge.hpp"
#include "runner/compare/records.hpp"
#include "runner/compare/sizes.hpp"
#include "runner/compare/snapshot.hpp"
#include "runner/engine/engine.hpp"
#include "runner/facts/probe.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::cli {
namespace {

using compare::Comparison;

fs::path compare_folder(Ui& ui) { return ui.store().root() / "compare"; }

/// Of what must be the same for figures to be put together.
fs::path default_file(Ui& ui, const Comparison& comparison) {
  Comparison key;
  key.terms = comparison.terms;
  key.terms.image_name.clear();
  key.host.name = comparison.host.name;
  key.host.cpu = comparison.host.cpu;
  for (const compare::SideResult& side : comparison.sides) {
    if (!side.options_digest) continue;
    compare::SideResult& own = key.sides.emplace_back();
    own.id = side.id;
    own.options_digest = side.options_digest;
  }
  const std::string name = Digest::of(compare::render_comparison(key)).brief() + ".json";
  return compare_folder(ui) / name;
}

compare::ComparedHost host_now() {
  const FactSources from = host_sources("/", "/tmp");
  const SystemFacts system = probe_system(from);
  const CpuFacts cpu = probe_cpu(from);
  compare::ComparedHost host;
  host.name = trim(read_file("/proc/sys/kernel/hostname"));
  host.kernel = system.kernel.value.value_or("unknown");
  host.cpu = cpu.model.value.value_or("an unknown processor");
  host.processors = cpu.processors.value.value_or(0);
  host.memory_bytes = probe_memory(from).total_bytes.value.value_or(0);
  return host;
}

compare::Terms terms_of(const CompareBench& made, const CompareWords& words) {
  compare::Terms terms;
  terms.image_name = printable(words.image);
  terms.image = made.image.digest().str();
  if (made.tools) terms.tools = made.tools->digest().str();
  if (!words.command.empty()) {
    terms.command = compare::shown_words(words.command);
    terms.command_digest = compare::digest_of_words(words.command);
    terms.folder = printable(fs::current_path().string());
  }
  if (made.previous) terms.previous = made.previous->digest().str();
  terms.processors = made.bench.terms.processors;
  if (!words.memory.empty()) terms.memory = words.memory;
  return terms;
}

void add_options(const CompareBench& made, std::vector<compare::SideResult>& sides) {
  for (compare::SideResult& side : sides) {
    const auto own = made.options.side_options.find(side.id);
    if (own == made.options.side_options.end()) continue;
    side.options = compare::shown_words(own->second);
    side.options_digest = compare::digest_of_words(own->second);
  }
}

/// Without figures: what makes the one that is to come differ from others.
Comparison question_of(const CompareBench& made, const CompareWords& words) {
  Comparison question;
  question.terms = terms_of(made, words);
  question.host = host_now();
  for (const std::string& id : made.options.sides) {
    compare::SideResult& side = question.sides.emplace_back();
    side.id = id;
    side.title = compare::find_side_spec(id)->title;
  }
  add_options(made, question.sides);
  return question;
}

/// How the virtual machine was run stands in its runs' records alone.
std::vector<compare::Machine> machines_now(const compare::Bench& bench,
                                           const std::vector<compare::SideResult>& sides) {
  const bool took_part = std::any_of(sides.begin(), sides.end(),
                                     [](const auto& side) { return side.id == "vm" && !side.why; });
  if (!took_part) return {};
  const std::string value = bench.terms.label.substr(compare::kLabel.size() + 1);
  return {compare::newest_machine(run_records(), value)};
}

/// Throws `other-comparison`.
void require_same_comparison(const fs::path& file, const Comparison& earlier,
                             const Comparison& now) {
  const std::string why = compare::apart(earlier, now);
  if (why.empty()) return;
  throw usage_error("other-comparison", "`{}` holds another comparison", file.string())
      .because(why)
      .hint("name another file with `--json-file`, or remove this one");
}

/// That a file can be written there, before minutes are spent on what would be in it.
void require_writable(const fs::path& file) {
  if (fs::is_directory(file)) {
    throw failure("io", "cannot write `{}`", file.string()).because("it is a folder");
  }
  const AtomicFile attempt(file);
}

Comparison read_comparison(const fs::path& file) {
  return compare::parse_comparison(read_small_file(file, size_limit::kComparison), file.string());
}

/// Nothing is measured for files that cannot be written or added to.
void check_files(const fs::path& file, const Comparison& question, const CompareWords& words) {
  require_writable(file);
  if (!words.html.empty()) require_writable(words.html);
  if (fs::exists(file)) require_same_comparison(file, read_comparison(file), question);
}

void add_computed(Ui& ui, const CompareBench& made, const compare::StopSignals& signals,
                  Comparison& comparison) {
  compare::SizeQuestion question{&made.image, made.previous ? &*made.previous : nullptr,
                                 made.options.rows};
  constexpr double kQuickCopies = 3;  // seconds
  question.stopped = [&] { return signals.any(); };
  if (made.options.quick) {
    question.seconds = kQuickCopies;
    question.machine_seconds = 0;
  }
  if (compare::is_asked("memory.density", made.options.rows)) {
    compare::add_density(comparison.rows, comparison.sides);
  }
  compare::add_sizes(question, ui.store(), comparison.sides, comparison.rows, ui.progress());
}

/// The question with the answers.
Comparison measure_now(Ui& ui, const CompareBench& made, const CompareWords& words,
                       Comparison comparison, compare::StopSignals& signals) {
  const auto prices = compare::parse_prices(words.prices);
  compare::Session session;
  session.started = utc_text(std::chrono::system_clock::now());
  session.quick = words.quick;
  session.budget_seconds = made.options.budget_seconds;
  session.mlenv = MLENV_VERSION;
  session.kernel = comparison.host.kernel;
  session.boot_id = made.bench.own_boot_id;
  session.noise = compare::noise_before();
  const std::string before = read_file("/proc/stat");
  compare::Measured measured = compare::measure(made.options, made.bench, signals, ui.progress());
  session.machines = machines_now(made.bench, measured.sides);
  compare::remove_records(run_records());
  session.noise.steal = compare::steal_since(before);
  session.seconds = measured.seconds;
  comparison.sides = std::move(measured.sides);
  add_options(made, comparison.sides);
  for (compare::SideResult& side : comparison.sides) {
    if (const auto price = prices.find(side.id); price != prices.end()) {
      side.price_per_hour = price->second;
    }
  }
  comparison.rows = std::move(measured.rows);
  if (signals.came() == 0) add_computed(ui, made, signals, comparison);
  comparison.sessions.push_back(std::move(session));
  compare::conclude(comparison);
  return comparison;
}

void write_kept(const fs::path& file, const Comparison& comparison) {
  constexpr mode_t kOwn = 0600;  // commands may say more than their words' rules know
  const std::string text = compare::render_comparison(comparison) + "\n";
  AtomicFile kept(file, kOwn);
  kept.write(as_bytes(text));
  kept.commit();
}

struct Kept {
  Comparison comparison;
  fs::path file;
  std::optional<Error> problem;  ///< with the file that was meant
};

/// With what the file has of an earlier time. Where that fails, alone and under another name.
Kept keep(const fs::path& file, const Comparison& now, std::optional<double> own_price) {
  Kept kept{now, file, std::nullopt};
  try {
    Comparison earlier;
    if (fs::exists(file)) {
      earlier = read_comparison(file);
      require_same_comparison(file, earlier, now);
    }
    kept.comparison = compare::merged(std::move(earlier), now);
    compare::add_costs(kept.comparison, own_price);
    write_kept(file, kept.comparison);
    return kept;
  } catch (const Error& error) {
    kept.problem = error;
  }
  kept.comparison = compare::merged({}, now);
  compare::add_costs(kept.comparison, own_price);
  kept.file = file.parent_path() / fmt::format("{}-{}.json", file.stem().string(),
                                               new_run_id(std::chrono::system_clock::now()));
  try {
    write_kept(kept.file, kept.comparison);
  } catch (const Error&) {
    kept.file.clear();  // the figures are shown all the same, and the first problem is told
  }
  return kept;
}

/// Columns of the terminal that answers go to; 0: they go elsewhere.
std::size_t answer_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void show_comparison(Ui& ui, const Comparison& comparison, const CompareWords& words) {
  if (!words.html.empty()) {
    write_answer_file(words.html, compare::html_page(comparison));
    ui.say(fmt::format("wrote `{}`", words.html));
  }
  if (ui.options.json) {
    ui.answer(compare::render_comparison(comparison));
  } else if (words.markdown) {
    for (const std::string& line : compare::markdown(comparison)) ui.answer(printable(line));
  } else {
    ui.answer_lines(compare_text(comparison, answer_width()));
  }
}

std::optional<double> own_price(const CompareWords& words) {
  return words.own > 0 ? std::optional(words.own) : std::nullopt;
}

int show_file(Ui& ui, const CompareWords& words) {
  Comparison comparison = read_comparison(words.show);
  const auto prices = compare::parse_prices(words.prices);
  for (compare::SideResult& side : comparison.sides) {
    if (const auto price = prices.find(side.id); price != prices.end()) {
      side.price_per_hour = price->second;
    }
  }
  compare::conclude(comparison);
  compare::add_costs(comparison, own_price(words));
  show_comparison(ui, comparison, words);
  return 0;
}

FileLock alone(Ui& ui) {
  make_own_folders(compare_folder(ui));
  auto lock = FileLock::attempt(compare_folder(ui) / "lock", FileLock::Mode::exclusive);
  if (lock) return std::move(*lock);
  throw failure("comparing", "another `mlenv compare` measures with this store")
      .because("two at once would measure each other")
      .hint("wait for its end");
}

/// What a comparison with this store left that was killed.
void remove_leftovers(Ui& ui, const CompareWords& words) {
  compare::remove_records(run_records());
  const std::string label = compare::snapshots_label(ui.store().root());
  for (const std::string& side : parse_sides(words.sides)) {
    if (is_engine(side)) compare::remove_snapshots(side, label);
  }
}

int compare_command(const CompareWords& words, Ui& ui) {
  if (!words.show.empty()) return show_file(ui, words);
  if (words.image.empty()) {
    throw usage_error("usage", "an image is needed: `mlenv compare IMAGE`")
        .hint(
            "`mlenv images` lists those that are there; `--show FILE` shows an earlier comparison");
  }
  check_words(words);
  const FileLock lock = alone(ui);
  remove_leftovers(ui, words);
  const CompareBench made(ui, words);
  const Comparison question = question_of(made, words);
  const fs::path file =
      words.json_file.empty() ? default_file(ui, question) : fs::path(words.json_file);
  check_files(file, question, words);
  if (made.bench.bare != nullptr) {
    ui.say("programs of the image run on the bare host, too: outside of any container");
  }
  compare::StopSignals signals;  // until what was measured is kept
  const Comparison now = measure_now(ui, made, words, question, signals);
  const Kept kept = keep(file, now, own_price(words));
  show_comparison(ui, kept.comparison, words);
  if (!ui.options.json && !kept.file.empty()) {
    ui.say(fmt::format("kept in `{}`", kept.file.string()));
  }
  if (kept.problem) throw Error(*kept.problem);
  return signals.came() == 0 ? 0 : kSignalBase + signals.came();
}

}  // namespace

Action declare_compare(CLI::App& app) {
  auto words = std::make_shared<CompareWords>();
  take_word_of(app.add_option("IMAGE", words->image, "an image in the store, or a recipe"),
               WordKind::runnable);
  app.add_option("--sides", words->sides, "of bare,builtin,docker,podman,vm; by default all");
  app.add_option("--rows", words->rows, "only these: start,cpu.integer; by default all");
  app.add_flag("--quick", words->quick, "under two minutes instead of ten");
  app.add_option("--budget", words->budget, "time to measure in: 90s, 5m");
  app.add_option("--cpus", words->cpus, "so many processors on every side")
      ->check(CLI::Range(1, CPU_SETSIZE));
  app.add_option("-m,--memory", words->memory, "at most so much memory where it can be limited");
  take_one_word(app.add_option("--option", words->options,
                               "SIDE=OPTION of `mlenv run` for one side: builtin=--cpus=0.5"));
  take_word_of(
      app.add_option("--tools", words->tools,
                     "image with sysbench, fio, iperf3, stress-ng; by default one is built"),
      WordKind::image);
  take_word_of(app.add_option("--previous", words->previous,
                              "the version that another host has, for what moving there takes"),
               WordKind::image);
  take_one_word(app.add_option("--price", words->prices, "SIDE=EUR_PER_HOUR, for cost per step"));
  app.add_option("--own", words->own, "EUR that a machine like this costs")
      ->check(CLI::PositiveNumber);
  take_word_of(app.add_option("--json-file", words->json_file,
                              "keep figures there, beside those of earlier times"),
               WordKind::file);
  take_word_of(app.add_option("--html", words->html, "write a page with tables and charts"),
               WordKind::file);
  app.add_flag("--markdown", words->markdown, "answer in markdown");
  take_word_of(app.add_option("--show", words->show, "measure nothing: show what this file has"),
               WordKind::file);
  take_word_of(app.add_option("CMD", words->command, "a command of yours, as a row of its own"),
               WordKind::job);
  app.positionals_at_end(false);
  app.footer("example: mlenv compare jax-cpu --quick --html report.html -- python train.py");
  return [words](Ui& ui) { return compare_command(*words, ui); };
}

}  // namespace mlenv::cli
