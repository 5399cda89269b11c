// The whole command line on one screen. Errors are caught and printed here alone.
#include <sys/resource.h>
#include <algorithm>
#include <array>
#include <new>
#include <sstream>

#include <CLI/CLI.hpp>

#include "base/host_path.hpp"
#include "base/lock_wait.hpp"
#include "base/log.hpp"
#include "base/program_start.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/standard_output.hpp"
#include "cli/compare.hpp"
#include "cli/copy.hpp"
#include "cli/export.hpp"
#include "cli/preflight.hpp"
#include "cli/probe_text.hpp"
#include "cli/pull_from.hpp"
#include "cli/quick_runtime.hpp"
#include "cli/rollback.hpp"
#include "cli/run_after.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "cli/watch.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "runner/compare/minder.hpp"
#include "runner/facts/probe.hpp"
#include "runner/job/attached_job.hpp"
#include "runner/job/detached_job.hpp"
#include "runner/launch/local_nodes.hpp"
#include "runner/local/detached.hpp"
#include "runner/local/run.hpp"
#include "runner/node/agent.hpp"
#include "runner/record/run_recorder.hpp"
#include "runner/watch/gpus.hpp"

namespace mlenv::cli {
namespace {

constexpr std::array kCommands = {
    Command{"Environment", "init", "write a recipe for this machine, or from another tool's file",
            declare_init},
    Command{"Environment", "lock", "resolve a recipe into a lock file", declare_lock},
    Command{"Environment", "add", "add packages to a recipe, and lock it", declare_add},
    Command{"Environment", "remove", "take packages out of a recipe, and lock it", declare_remove},
    Command{"Environment", "build", "build a recipe's image into the store", declare_build},
    Command{"Environment", "vendor", "keep a copy of everything that a lock names", declare_vendor},
    Command{"Run", "run", "run a command in an image", declare_run},
    Command{"Run", "shell", "open a shell in an image, or in a run that goes on", declare_shell},
    Command{"Run", "exec", "run a command in a run that goes on", declare_exec},
    Command{"Run", "ps", "list the runs that go on", declare_ps},
    Command{"Run", "logs", "show what a run in the background wrote", declare_logs},
    Command{"Run", "stop", "end runs", declare_stop},
    Command{"Run", "wait", "wait for the end of runs", declare_wait},
    Command{"Run", "watch", "show what a run uses, and tell whether it waits", declare_watch},
    Command{"Results", "runs", "list past and present runs", declare_runs},
    Command{"Results", "reproduce", "repeat a run, and tell whether it gives the same bits",
            declare_reproduce},
    Command{"Results", "diff", "tell what changed between two runs, hosts, locks or images",
            declare_diff},
    Command{"Results", "compare",
            "measure an image in a container, in a virtual machine, on the bare host",
            declare_compare},
    Command{"Images", "images", "list the images in the store", declare_images},
    Command{"Images", "inspect", "show what an image is made of", declare_inspect},
    Command{"Images", "tag", "give an image another name", declare_tag},
    Command{"Images", "rollback", "give a name the image that it had before", declare_rollback},
    Command{"Images", "rm", "take a name away", declare_rm},
    Command{"Images", "save", "write an image as files", declare_save},
    Command{"Images", "load", "take images from files into the store", declare_load},
    Command{"Share", "push", "push an image to a registry", declare_push},
    Command{"Share", "pull", "pull an image from a registry", declare_pull},
    Command{"Share", "export", "write what other tools need to use an image or a run",
            declare_export},
    Command{"Cluster", "copy", "bring an image to other machines", declare_copy},
    Command{"Cluster", "preflight", "measure the links between the nodes of a job",
            declare_preflight},
    Command{"Machine", "facts", "tell what this host is: system, GPUs, network, limits",
            declare_facts},
    Command{"Machine", "check", "tell whether an image, lock or recipe runs on a host",
            declare_check},
    Command{"Machine", "explain", "say what a rule of `check` means, and what to do",
            declare_explain},
    Command{"Machine", "probe", "try the GPUs: memory, a kernel, bandwidths, NCCL", declare_probe},
    Command{"Machine", "data", "show and refresh what is known of CUDA releases", declare_data},
    Command{"Machine", "gc", "free the room of what nobody needs any more", declare_gc},
    Command{"Machine", "store", "look after the store: verify, sync, path", declare_store},
    Command{"Help", "help", "say what a command does", declare_help},
    Command{"Help", "completion", "print a shell's completion script", declare_completion},
    Command{"", "generate", "", declare_generate},
    Command{"", "ssh-proxy", "", declare_ssh_proxy},
    Command{"", "registry-grant", "", declare_registry_grant},
};

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.add_flag("--json", options.json, "answers and errors as JSON");
  app.add_flag("-q,--quiet", options.quiet, "answers and errors only");
  app.add_flag("--verbose", options.verbose, "debug log on standard error");
  take_one_of(app.add_option("--color", options.color, "colour on standard error"),
              {"auto", "always", "never"});
  take_one_of(app.add_option("--progress", options.progress, "how progress is shown"),
              {"auto", "tty", "plain", "json", "none"});
}

constexpr int kUsageStatus = 2;

/// Under `run` and its kin, other statuses are the command's.
void choose_failure_status(Ui& ui, const CLI::App& app) {
  constexpr std::array<std::string_view, 4> kWithStatus = {"run", "shell", "exec", "wait"};
  const auto commands = app.get_subcommands();
  if (commands.empty()) return;
  const std::string name = commands.front()->get_name();
  if (std::find(kWithStatus.begin(), kWithStatus.end(), name) != kWithStatus.end()) {
    ui.failure_status = kOwnFailureStatus;
  }
}

/// Whatever needs the current folder fails in one that was removed.
Error explained(const fs::filesystem_error& error) {
  std::error_code gone;
  (void)fs::current_path(gone);
  if (gone != std::errc::no_such_file_or_directory) {
    return Error{Kind::internal, "internal", "an unexpected error"}.because(error.what());
  }
  return failure("folder-gone", "the current folder is not there any more")
      .because("somebody removed it while this shell was in it")
      .hint("`cd` to another one; where it was made again, `cd .`");
}

/// With less, a program ends without a word, or says of something else that it is wrong.
void require_room() {
  constexpr rlim_t kLeastStack = rlim_t{256} << 10U;
  constexpr rlim_t kLeastFiles = 32;
  rlimit stack{};
  rlimit files{};
  if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < kLeastStack) {
    throw failure("small-limits", "a stack of {} KiB is too small for mlenv", stack.rlim_cur >> 10U)
        .hint("`ulimit -s 8192`");
  }
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kLeastFiles) {
    throw failure("small-limits", "{} open files are too few for mlenv", files.rlim_cur)
        .hint("`ulimit -n 1024`");
  }
}

int run_main_command(Ui& ui, const Action& action) {
  try {
    require_room();
    return action(ui);
  } catch (const Error& error) {
    return ui.report(explained_by_store(error));
  } catch (const fs::filesystem_error& error) {
    return ui.report(explained(error));
  } catch (const std::bad_alloc&) {
    return ui.report(failure("no-memory", "there is not enough memory"));
  } catch (const std::exception& error) {
    return ui.report(
        Error{Kind::internal, "internal", "an unexpected error"}.because(error.what()));
  }
}

/// `--help` and `--version` are answers, too.
int show_asked(const CLI::App& app, const CLI::Success& asked) {
  std::ostringstream answer;
  const int status = app.exit(asked, answer);
  write_answer(answer.str());
  return status;
}

int main_with(int argc, char** argv, Ui& ui) {
  CLI::App app{"mlenv: ML environments from a recipe to a pinned, reproducible container image"};
  app.name("mlenv");
  use_help_formatter(app);
  app.set_version_flag("-V,--version", "mlenv " MLENV_VERSION, "print the version");
  app.require_subcommand(1);
  app.fallthrough();
  add_global_options(app, ui.options);
  Action chosen;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.purpose);
    sub->group(command.group);
    const Action action = command.declare(*sub);
    sub->callback([&chosen, action] { chosen = action; });
  }
  const std::vector<std::string> words = separate_job({argv + std::min(argc, 1), argv + argc});
  if (words.empty()) {
    ui.say(help_text(app));
    return kUsageStatus;
  }
  try {
    std::vector<std::string> given = as_they_are(app, words);
    std::reverse(given.begin(), given.end());  // CLI11 takes them from the back
    app.parse(std::move(given));
  } catch (const CLI::Success& done) {
    return show_asked(app, done);
  } catch (const CLI::ParseError& error) {
    choose_failure_status(ui, app);
    return ui.report(usage_mistake(app, words, error));
  }
  choose_failure_status(ui, app);
  if (ui.options.verbose) log::enable();
  on_lock_wait([&ui](const std::string& text) { ui.progress().note("mlenv " + text); });
  look_for_cuda_data(store_folder);
  return run_main_command(ui, chosen);
}

/// Where a part of the answer could not be written, that is said and is a failure. Under `run` and
/// its kin the command's own failure keeps its status.
int settled(const Ui& ui, int status) {
  if (settle_answers() == 0) return status;
  const int failed = ui.report(lost_answer());
  return ui.failure_status && status != 0 ? status : failed;
}

int ask_mlenv(int argc, char** argv) {
  Ui ui;
  return settled(ui, main_with(argc, argv, ui));
}

}  // namespace

}  // namespace mlenv::cli

int main(int argc, char** argv) {
  mlenv::begin_program(argc, argv);
  // What a run left in the project is no program of this machine.
  mlenv::use_host_folders();
  // A re-exec into a namespace: before anything that could make a thread.
  if (const std::optional<int> status = mlenv::sandbox_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::run_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::detached_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::job::detached_job_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::job::attached_job_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::job::local_node_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::facts_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::watch::gpus_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::record_main(argc, argv, mlenv::cli::versions_folder))
    return *status;
  if (const std::optional<int> status = mlenv::job::node_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::cli::release_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::cli::probe_main(argc, argv)) return *status;
  if (const std::optional<int> status = mlenv::compare::minder_main(argc, argv)) return *status;
  return mlenv::cli::ask_mlenv(argc, argv);
}
