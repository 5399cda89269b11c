#include "cli/compare.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "base/text.hpp"
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
    if (side.options.empty()) continue;
    compare::SideResult& own = key.sides.emplace_back();
    own.id = side.id;
    own.options = side.options;
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
  terms.image_name = words.image;
  terms.image = made.image.digest().str();
  if (made.tools) terms.tools = made.tools->digest().str();
  terms.command = words.command;
  terms.processors = made.bench.terms.processors;
  if (!words.memory.empty()) terms.memory = words.memory;
  return terms;
}

/// How the virtual machine was run stands in its runs' records alone.
void tell_machine(const compare::Bench& bench, std::vector<compare::SideResult>& sides) {
  for (compare::SideResult& side : sides) {
    if (side.id != "vm" || side.why) continue;
    const std::string value = bench.terms.label.substr(compare::kLabel.size() + 1);
    const auto facts = compare::newest_machine(run_records(), value);
    if (!facts) continue;
    side.emulated = facts->emulated;
    side.about = facts->about;
  }
}

struct MeasuredNow {
  Comparison comparison;
  int signal = 0;
};

/// Throws `other-comparison`.
void require_same(const fs::path& file, const Comparison& earlier, const Comparison& now) {
  const std::string why = compare::apart(earlier, now);
  if (why.empty()) return;
  throw usage_error("other-comparison", "`{}` holds another comparison", file.string())
      .because(why)
      .hint("name another file with `--json-file`, or remove this one");
}

/// Nothing is measured for a file that it could not be added to.
void check_file(const CompareBench& made, const CompareWords& words) {
  if (words.json_file.empty()) return;
  const std::optional<std::string> text = read_file_if_exists(words.json_file);
  if (!text) return;
  Comparison now;
  now.terms = terms_of(made, words);
  now.host = host_now();
  for (const std::string& id : made.options.sides) {
    const auto own = made.options.side_options.find(id);
    compare::SideResult& side = now.sides.emplace_back();
    side.id = id;
    side.title = compare::find_side_spec(id)->title;
    if (own != made.options.side_options.end()) side.options = own->second;
  }
  require_same(words.json_file, compare::parse_comparison(*text, words.json_file), now);
}

MeasuredNow measure_now(Ui& ui, const CompareWords& words) {
  const auto prices = compare::parse_prices(words.prices);
  compare::remove_records(run_records());
  CompareBench made(ui, words);
  check_file(made, words);
  std::optional<Image> previous;
  if (!words.previous.empty()) previous = image_named(ui, words.previous);
  if (made.bench.bare != nullptr) {
    ui.say("programs of the image run on the bare host, too: outside of any container");
  }
  MeasuredNow now;
  Comparison& comparison = now.comparison;
  compare::Session session;
  session.started = utc_text(std::chrono::system_clock::now());
  session.quick = words.quick;
  session.budget_seconds = made.options.budget_seconds;
  session.mlenv = MLENV_VERSION;
  session.boot_id = made.bench.own_boot_id;
  session.noise = compare::noise_before();
  const std::string before = read_file("/proc/stat");
  compare::Measured measured = compare::measure(made.options, made.bench, ui.progress());
  tell_machine(made.bench, measured.sides);
  compare::remove_records(run_records());
  session.noise.steal = compare::steal_since(before);
  session.seconds = measured.seconds;
  now.signal = measured.signal;
  comparison.terms = terms_of(made, words);
  comparison.host = host_now();
  comparison.sides = std::move(measured.sides);
  for (compare::SideResult& side : comparison.sides) {
    if (const auto price = prices.find(side.id); price != prices.end()) {
      side.price_per_hour = price->second;
    }
  }
  comparison.rows = std::move(measured.rows);
  if (now.signal == 0) {
    const compare::SizeQuestion question{&made.image, previous ? &*previous : nullptr,
                                         made.options.rows};
    if (compare::is_asked("memory.density", made.options.rows)) {
      compare::add_density(comparison.rows, comparison.sides);
    }
    compare::add_sizes(question, ui.store(), comparison.sides, comparison.rows, ui.progress());
  }
  comparison.sessions.push_back(std::move(session));
  compare::conclude(comparison);
  return now;
}

/// With what the file has of an earlier time, which is then written anew.
Comparison keep(const fs::path& file, Comparison now) {
  if (const std::optional<std::string> text = read_file_if_exists(file)) {
    Comparison earlier = compare::parse_comparison(*text, file.string());
    require_same(file, earlier, now);
    now = compare::merged(std::move(earlier), std::move(now));
  } else {
    now = compare::merged({}, std::move(now));
  }
  return now;
}

void show(Ui& ui, const Comparison& comparison, const CompareWords& words) {
  if (!words.html.empty()) {
    write_file(words.html, compare::html_page(comparison));
    ui.say(fmt::format("wrote `{}`", words.html));
  }
  if (ui.options.json) {
    ui.answer(compare::render_comparison(comparison));
  } else if (words.markdown) {
    for (const std::string& line : compare::markdown(comparison)) ui.answer(line);
  } else {
    for (const std::string& line : compare_text(comparison)) ui.answer(line);
  }
}

std::optional<double> own_price(const CompareWords& words) {
  return words.own > 0 ? std::optional(words.own) : std::nullopt;
}

int show_file(Ui& ui, const CompareWords& words) {
  Comparison comparison = compare::parse_comparison(read_file(words.show), words.show);
  const auto prices = compare::parse_prices(words.prices);
  for (compare::SideResult& side : comparison.sides) {
    if (const auto price = prices.find(side.id); price != prices.end()) {
      side.price_per_hour = price->second;
    }
  }
  compare::conclude(comparison);
  compare::add_costs(comparison, own_price(words));
  show(ui, comparison, words);
  return 0;
}

FileLock alone(Ui& ui) {
  make_folders(compare_folder(ui));
  auto lock = FileLock::attempt(compare_folder(ui) / "lock", FileLock::Mode::exclusive);
  if (lock) return std::move(*lock);
  throw failure("comparing", "another `mlenv compare` measures with this store")
      .because("two at once would measure each other")
      .hint("wait for its end");
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
  MeasuredNow now = measure_now(ui, words);
  const fs::path file =
      words.json_file.empty() ? default_file(ui, now.comparison) : fs::path(words.json_file);
  Comparison comparison = keep(file, std::move(now.comparison));
  compare::add_costs(comparison, own_price(words));
  write_file(file, compare::render_comparison(comparison) + "\n");
  show(ui, comparison, words);
  if (!ui.options.json) ui.say(fmt::format("kept in `{}`", file.string()));
  constexpr int kSignalled = 128;
  return now.signal == 0 ? 0 : kSignalled + now.signal;
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
