#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_matrix.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"
#include "runner/matrix/placeholders.hpp"

namespace mlenv::cli {
namespace {

constexpr std::size_t kMostAtOnce = 1024;

/// Options of a matrix alone, without one.
void refuse_without_matrix(const MatrixWords& words) {
  const char* option = words.at_once            ? "--parallel"
                       : !words.results.empty() ? "--results"
                       : words.resume           ? "--resume"
                       : words.fail_fast        ? "--fail-fast"
                                                : nullptr;
  if (option == nullptr) return;
  throw usage_error("usage", "`{}` is of `--matrix`, which is not given", option)
      .hint("`--matrix lr=0.1,0.01` runs a variation for each value");
}

Error not_with_matrix(std::string_view option, std::string_view why) {
  return usage_error("usage", "`{}` does not go with `--matrix`", option).because(std::string(why));
}

void refuse_beside_matrix(const BesideMatrix& beside) {
  if (beside.terminal) throw not_with_matrix("-t", "variations have no standard input");
  if (beside.life.detach && !beside.in_slurm) {
    throw not_with_matrix("-d", "mlenv stays, to start one when another is over")
        .hint(
            "`nohup mlenv run --matrix … &`; what a closed terminal ended goes on with `--resume`");
  }
  if (!beside.choice.options.ports.empty()) {
    throw not_with_matrix("--publish", "each variation would want the same port");
  }
  const RestartPolicy::When when = beside.life.run.restart.when;
  if (when == RestartPolicy::When::always) {
    throw not_with_matrix(fmt::format("--restart {}", beside.life.run.restart.text),
                          "no variation would ever be done")
        .hint("`--restart on-failure:2`");
  }
}

/// A parameter is a variable, which something else must not set.
void refuse_set_elsewhere(const MatrixChoice& matrix, const BesideMatrix& beside) {
  const auto refuse = [&](const std::vector<std::string>& variables, std::string_view option) {
    for (const std::string& variable : variables) {
      const std::string name = variable.substr(0, variable.find('='));
      for (const std::string& parameter : names_of(matrix.axes)) {
        if (parameter != name) continue;
        throw usage_error("usage", "`{}` sets `{}`, which is a parameter of the matrix", option,
                          name)
            .hint(fmt::format("leave it out, or name the parameter otherwise; `{{{}}}` in the "
                              "command is its value",
                              name));
      }
    }
  };
  refuse(beside.env, "-e");
  refuse(beside.choice.env, "--env-file");
}

}  // namespace

void add_matrix_options(CLI::App& app, MatrixWords& words) {
  CLI::Option* const axes = app.add_option(
      "--matrix", words.axes, "a variation for each value: lr=0.1,0.01, seed=1..5, or @FILE.csv");
  take_one_word(axes);
  axes->type_name("NAME=VALUES");
  app.add_option("--parallel", words.at_once, "so many variations at once, GPUs divided among them")
      ->check(CLI::Range(std::size_t{1}, kMostAtOnce))
      ->type_name("N");
  take_word_of(app.add_option("--results", words.results,
                              "where the variations' folders go; by default matrix/ID"),
               WordKind::file);
  app.add_flag("--resume", words.resume, "go on with a matrix: what is not done");
  app.add_flag("--fail-fast", words.fail_fast, "end the matrix when a variation fails");
}

std::optional<MatrixChoice> parse_matrix(const MatrixWords& words, const BesideMatrix& beside) {
  if (words.axes.empty()) {
    refuse_without_matrix(words);
    return std::nullopt;
  }
  MatrixChoice choice{matrix::parse_matrix(words.axes), words};
  refuse_beside_matrix(beside);
  refuse_set_elsewhere(choice, beside);
  matrix::check_placeholders(beside.argv, names_of(choice.axes));
  return choice;
}

}  // namespace mlenv::cli
