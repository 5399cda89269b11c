// mlenv-node: what a node needs of mlenv, in one file without shared libraries. It takes an image
// and runs ranks (`agent`); the rest are processes of its own making.
#include <unistd.h>
#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "base/host_path.hpp"
#include "base/process.hpp"
#include "base/program_start.hpp"
#include "base/sandbox/sandbox.hpp"
#include "base/standard_output.hpp"
#include "runner/facts/probe.hpp"
#include "runner/job/lead.hpp"
#include "runner/job/messages.hpp"
#include "runner/local/detached.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/run.hpp"
#include "runner/mpi/commands.hpp"
#include "runner/node/agent.hpp"
#include "runner/node/run_command.hpp"
#include "runner/node/version.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kUsage =
    "usage: mlenv-node agent [STORE]   serve a job's controller on standard input and output\n"
    "       mlenv-node lead FOLDER     drive the job in FOLDER on the nodes of this allocation\n"
    "       mlenv-node facts [STORE]   what this node is, as `mlenv facts --json` has it\n"
    "       mlenv-node prepare|lacks|run …   for scripts that `mlenv export` writes\n"
    "       mlenv-node --version\n"
    "mlenv starts it on the nodes of a job (`mlenv run --nodes N`).\n";

constexpr int kWrongUsage = 2;

void write_words(std::string_view text) { (void)write_quietly(STDERR_FILENO, text); }

void complain(const Error& error) {
  write_words(fmt::format("mlenv-node: {}\n", error.what()));
  if (!error.hint().empty()) write_words(fmt::format("  what to do: {}\n", error.hint()));
}

/// Where what programs say of their version is remembered; empty: nowhere.
fs::path versions_folder() {
  const auto variables = caller_variables();
  const auto cache = variables.find("XDG_CACHE_HOME");
  if (cache != variables.end()) return fs::path(cache->second) / "mlenv/versions";
  const auto home = variables.find("HOME");
  return home == variables.end() ? fs::path{} : fs::path(home->second) / ".cache/mlenv/versions";
}

int command(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--version") {
    write_answer(fmt::format("mlenv-node {} protocol {}\n", own_version(), kProtocol));
    return 0;
  }
  if (word == "agent" && argc <= 3) return serve_standard_streams(argc > 2 ? argv[2] : "");
  if (word == "facts" && argc <= 3) {
    const fs::path store = argc > 2 ? fs::path(argv[2]) : default_node_store();
    write_answer(render_facts(probe_facts(host_sources(store, temporary_root()))) + "\n");
    return 0;
  }
  if (word == "lead" && argc == 3) return lead(argv[2], own_version());
  if (const auto status = script_command({argv + std::min(argc, 1), argv + argc})) return *status;
  write_words(kUsage);
  return kWrongUsage;
}

/// Processes of ours that are this program again, before anything that could make a thread.
std::optional<int> inner_main(int argc, char** argv) {
  if (const std::optional<int> status = mpi::mpi_main(argc, argv)) return status;
  if (const std::optional<int> status = sandbox_main(argc, argv)) return status;
  if (const std::optional<int> status = run_main(argc, argv)) return status;
  if (const std::optional<int> status = detached_main(argc, argv)) return status;
  if (const std::optional<int> status = facts_main(argc, argv)) return status;
  if (const std::optional<int> status = record_main(argc, argv, versions_folder)) return status;
  return node_main(argc, argv);
}

}  // namespace
}  // namespace mlenv::job

int main(int argc, char** argv) {
  mlenv::begin_program(argc, argv);
  mlenv::use_host_folders(/*relative_only=*/true);
  try {
    if (const std::optional<int> status = mlenv::job::inner_main(argc, argv)) return *status;
    const int status = mlenv::job::command(argc, argv);
    if (mlenv::settle_answers() == 0) return status;
    mlenv::job::complain(mlenv::lost_answer());
    return status == 0 ? 1 : status;
  } catch (const mlenv::Error& error) {
    mlenv::job::complain(error);
    return mlenv::kOwnFailureStatus;
  } catch (const std::exception& error) {
    mlenv::job::write_words(fmt::format("mlenv-node: {}\n", error.what()));
    return 1;
  }
}
