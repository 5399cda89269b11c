#include <unistd.h>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/command_tree.hpp"
#include "cli/running.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "runner/local/exec_client.hpp"

namespace mlenv::cli {
namespace {

struct ExecWords {
  std::string run;
  std::vector<std::string> env;
  std::string workdir;
  bool interactive = false;
  bool tty = false;
  std::vector<std::string> command;
};

/// `K` takes the caller's value; one that is not set is left out, as `run` does it.
std::vector<std::string> exec_variables(const std::vector<std::string>& words) {
  check_variables(words);
  std::vector<std::string> found;
  for (const std::string& word : words) {
    if (word.find('=') != std::string::npos) {
      found.push_back(word);
    } else if (const auto all = all_variables(); all.contains(word)) {
      found.push_back(word + "=" + all.at(word));
    }
  }
  return found;
}

ExecRequest exec_request(const std::vector<std::string>& env, const std::string& workdir) {
  ExecRequest request;
  request.env = exec_variables(env);
  request.workdir = workdir;
  const auto all = all_variables();
  if (const auto term = all.find("TERM"); term != all.end()) request.term = term->second;
  return request;
}

int exec_asked(const ExecWords& options) {
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1;
  if (options.tty && !on_terminal) {
    throw usage_error("usage", "`-t` passes a terminal on, and standard input is none")
        .hint("leave `-t` out; `-i` passes standard input on");
  }
  const RunRecords records = run_records();
  const std::string id = records.find(options.run);
  require_running(records, id);
  ExecRequest request = exec_request(options.env, options.workdir);
  request.argv = options.command;
  request.terminal = options.tty || (on_terminal && ::isatty(STDOUT_FILENO) == 1);
  return exec_in_run(records.folder_of(id), id, std::move(request), options.interactive).code;
}

}  // namespace

RunRecords run_records() { return RunRecords{runs_folder(store_folder())}; }

std::optional<std::string> running_run(const std::string& word, bool is_image) {
  const RunRecords records = run_records();
  if (auto named = records.running_with_name(word)) return named;
  try {
    std::string id = records.find(word);
    const bool meant = id == word || !is_image;
    if (meant && records.goes_on(id)) return id;
  } catch (const Error& error) {
    if (error.code() != "no-run" && error.code() != "ambiguous") throw;
  }
  return std::nullopt;
}

void require_running(const RunRecords& records, const std::string& id) {
  if (!records.goes_on(id)) {
    throw refusal("run-ended", "run `{}` has ended", id)
        .because("it is " + records.read_brief(id).state)
        .hint("`mlenv ps` lists those that go on");
  }
  if (records.read_brief(id).state == "queued") {
    throw refusal("run-queued", "run `{}` waits for others, and has not begun", id)
        .hint("`mlenv logs -f` and `mlenv wait` wait for it");
  }
}

int shell_in_run(const std::string& id, const ShellWords& words) {
  const RunRecords records = run_records();
  ExecRequest request = exec_request(words.env, words.workdir);
  request.terminal = ::isatty(STDIN_FILENO) == 1;
  return exec_in_run(records.folder_of(id), id, std::move(request), true).code;
}

Action declare_exec(CLI::App& app) {
  auto options = std::make_shared<ExecWords>();
  take_word_of(app.add_option("RUN", options->run, "an id, its beginning or end, a name, or `last`")
                   ->required(),
               WordKind::running);
  app.add_flag("-i,--interactive", options->interactive, "pass standard input on");
  app.add_flag("-t,--tty", options->tty, "give it a terminal");
  take_one_word(app.add_option("-e,--env", options->env, "set K=V, or pass the caller's K on"));
  app.add_option("-w,--workdir", options->workdir, "start there; by default where the run did");
  take_word_of(app.add_option("CMD", options->command, "the command")->required(), WordKind::job);
  app.prefix_command(false);
  app.positionals_at_end(false);
  app.footer("example: mlenv exec last nvidia-smi");
  return [options](Ui& /*ui*/) { return exec_asked(*options); };
}

}  // namespace mlenv::cli
