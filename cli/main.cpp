// The whole command line on one screen. Errors are caught and printed here alone.
#include <algorithm>
#include <array>
#include <cstdio>
#include <new>

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "base/sandbox/sandbox.hpp"
#include "cli/ui.hpp"
#include "runner/local/run.hpp"

namespace mlenv::cli {
namespace {

constexpr std::array kCommands = {
    Command{"lock", "resolve a recipe into a lock file", declare_lock},
    Command{"build", "build a recipe's image into the store", declare_build},
    Command{"run", "run a command in an image", declare_run},
    Command{"push", "push an image to a registry", declare_push},
    Command{"pull", "pull an image from a registry", declare_pull},
    Command{"images", "list the images in the store", declare_images},
    Command{"inspect", "show what an image is made of", declare_inspect},
    Command{"tag", "give an image another name", declare_tag},
    Command{"rm", "take a name away", declare_rm},
    Command{"save", "write an image as files", declare_save},
    Command{"store", "look after the store: verify, sync, path", declare_store},
};

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.add_flag("--json", options.json, "answers and errors as JSON");
  app.add_flag("-q,--quiet", options.quiet, "answers and errors only");
  app.add_flag("--verbose", options.verbose, "debug log on standard error");
  app.add_option("--color", options.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("--progress", options.progress, "auto, tty, plain, json or none")
      ->check(CLI::IsMember({"auto", "tty", "plain", "json", "none"}));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string nearest_command(std::string_view word) {
  for (const Command& command : kCommands) {
    if (edit_distance(word, command.name) <= 2) return command.name;
  }
  return {};
}

/// CLI11's own words, said our way.
Error usage_mistake(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv) {
  const bool no_command = app.get_subcommands().empty();
  if (no_command && argc > 1 && argv[1][0] != '-') {
    Error mistake = usage_error("unknown-command", "there is no command `{}`", argv[1]);
    const std::string near = nearest_command(argv[1]);
    if (!near.empty())
      return std::move(mistake).hint(fmt::format("did you mean `mlenv {}`?", near));
    return std::move(mistake).hint("`mlenv --help` lists the commands");
  }
  std::string command = "mlenv";
  if (!no_command) command += " " + app.get_subcommands().front()->get_name();
  std::string text = error.what();
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return usage_error("usage", "{}", text).hint(fmt::format("see `{} --help`", command));
}

/// Under `run`, other statuses are the command's.
void choose_failure_status(Ui& ui, const CLI::App& app) {
  constexpr int kOwnFailure = 125;
  const auto commands = app.get_subcommands();
  if (!commands.empty() && commands.front()->get_name() == "run") ui.failure_status = kOwnFailure;
}

int run_main_command(Ui& ui, const Action& action) {
  try {
    return action(ui);
  } catch (const Error& error) {
    return ui.report(error);
  } catch (const std::bad_alloc&) {
    return ui.report(failure("no-memory", "there is not enough memory"));
  } catch (const std::exception& error) {
    return ui.report(
        Error{Kind::internal, "internal", "an unexpected error"}.because(error.what()));
  }
}

int main_with(int argc, char** argv) {
  Ui ui;
  CLI::App app{"mlenv: ML environments from a recipe to a pinned, reproducible container image"};
  app.set_version_flag("--version", "mlenv " MLENV_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  add_global_options(app, ui.options);
  Action chosen;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.purpose);
    const Action action = command.declare(*sub);
    sub->callback([&chosen, action] { chosen = action; });
  }
  try {
    app.name(argv[0]);
    std::vector<std::string> words = separate_job({argv + 1, argv + argc});
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(words);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    choose_failure_status(ui, app);
    return ui.report(usage_mistake(error, app, argc, argv));
  }
  choose_failure_status(ui, app);
  if (ui.options.verbose) log::enable();
  return run_main_command(ui, chosen);
}

}  // namespace
}  // namespace mlenv::cli

int main(int argc, char** argv) {
  // A re-exec into a namespace: before anything that could make a thread.
  if (const std::optional<int> status = mlenv::sandbox_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::run_main(argc, argv)) return *status;
  return mlenv::cli::main_with(argc, argv);
}
