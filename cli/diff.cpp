#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/diff_changes.hpp"
#include "cli/diff_nodes.hpp"
#include "cli/diff_text.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {
namespace {

struct DiffWords {
  std::string from;
  std::string to;
  std::string platform;
  bool all = false;
};

/// What was left out of the comparison.
void say_other_platforms(const Side& from, const Side& to, Ui& ui) {
  std::vector<std::string> others;
  for (const Lock& lock : from.locks.locks) {
    const bool both = to.locks.find(lock.platform) != nullptr;
    if (both && lock.platform != from.platform()) others.push_back(lock.platform);
  }
  if (others.empty()) return;
  ui.say(fmt::format("note: compared for {}; `--platform` compares for {}", from.platform(),
                     join(others, ", ")));
}

int diff_two_sides(const DiffWords& options, Side from, Side to, Ui& ui) {
  choose_platform_of(from, to, options.platform);
  if (options.platform.empty()) say_other_platforms(from, to, ui);
  const SideComparison comparison = compare(ui, from, to);
  if (ui.options.json) {
    ui.answer(canonical(diff_json(from, to, comparison)));
  } else {
    ui.answer_lines(diff_text(comparison));
  }
  return comparison.same ? 0 : kAnswerIsNo;
}

int diff_moments(const DiffWords& options, NamedMoment& from, NamedMoment& to, Ui& ui) {
  const changes::Changes found = compare(ui, from, to);
  if (ui.options.json) {
    ui.answer(canonical(changes_json(from, to, found)));
  } else {
    ui.answer_lines(changes_text(from, to, found, options.all));
  }
  return found.differ() ? kAnswerIsNo : 0;
}

int diff_command(const DiffWords& options, Ui& ui) {
  if (options.to.empty()) return diff_nodes(ui, options.from, options.all);
  std::optional<NamedMoment> from = moment_named(ui, options.from);
  std::optional<NamedMoment> to = moment_named(ui, options.to);
  if (from && to) return diff_moments(options, *from, *to, ui);
  const auto side = [&](const std::optional<NamedMoment>& moment, const std::string& name,
                        const std::string& other) {
    return moment ? side_of(ui, *moment, other) : side_named(ui, name);
  };
  return diff_two_sides(options, side(from, options.from, options.to),
                        side(to, options.to, options.from), ui);
}

}  // namespace

Action declare_diff(CLI::App& app) {
  auto options = std::make_shared<DiffWords>();
  app.add_option("A", options->from,
                 "a run (a part of its id, `last`, `last~1`), a node of a job (JOB:NODE), `host` "
                 "(this one), what `mlenv runs "
                 "show --json` "
                 "or `mlenv facts --json` wrote, a lock, a recipe (its lock), or an image")
      ->required();
  app.add_option("B", options->to,
                 "what to compare it with; of a job alone its nodes are compared");
  app.add_flag("--all", options->all,
               "of runs and hosts: also what cannot matter, and each package");
  app.add_option("--platform", options->platform,
                 "of locks for several platforms: which one; by default this machine's")
      ->type_name("PLATFORM");
  app.footer("exit status: 0 no difference, 3 they differ\nexample: mlenv diff last~1 last");
  return [options](Ui& ui) { return diff_command(*options, ui); };
}

}  // namespace mlenv::cli
