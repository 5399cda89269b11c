#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/diff_text.hpp"

namespace mlenv::cli {
namespace {

constexpr int kDifferent = 3;

struct Options {
  std::string from;
  std::string to;
};

int diff_command(const Options& options, Ui& ui) {
  const Side from = side_named(ui, options.from);
  const Side to = side_named(ui, options.to);
  const Comparison comparison = compare(ui, from, to);
  if (ui.options.json) {
    ui.answer(canonical(diff_json(from, to, comparison)));
  } else {
    for (const std::string& line : diff_text(comparison)) ui.answer(line);
  }
  return comparison.same ? 0 : kDifferent;
}

}  // namespace

Action declare_diff(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("A", options->from, "lock, recipe (its lock is taken), or image in the store")
      ->required();
  app.add_option("B", options->to, "what to compare it with")->required();
  app.footer(
      "exit status: 0 no difference, 3 they differ\nexample: mlenv diff mine.lock theirs.lock");
  return [options](Ui& ui) { return diff_command(*options, ui); };
}

}  // namespace mlenv::cli
