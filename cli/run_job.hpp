#pragma once
// `mlenv run --nodes`: one command on several nodes (docs/jobs.md).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_life.hpp"
#include "cli/run_matrix.hpp"
#include "cli/run_options.hpp"
#include "cli/ui.hpp"
#include "runner/export/job_script.hpp"
#include "runner/job/code.hpp"
#include "runner/job/drive.hpp"
#include "runner/job/parts.hpp"
#include "runner/launch/hosts.hpp"

namespace mlenv::cli {

struct JobWords {
  std::string nodes;
  std::string engine;
  std::string hosts;
  std::string ranks_per_node;
  std::string strategy;
  std::string framework;
  std::string interface;
  std::string pull_from;
  std::string restarts;
  std::string rescale_interval;
  std::string checkpoints;
  std::string servers;
  std::string code;
  bool evaluator = false;
  bool async = false;
  std::vector<std::string> site;  ///< for sbatch
  bool dry_run = false;
  std::string script;  ///< of `mlenv export`: its form; empty: the job is run
  std::string script_with;
  std::string script_file;
  bool script_force = false;
  bool preflight = false;
  std::string stall_timeout;
  std::vector<std::string> after;  ///< also of a run on one machine
};
/// Those that take the next word.
inline constexpr std::string_view kJobOptionsWithWords[] = {
    "--nodes",        "--engine",           "--hosts",         "--ranks-per-node",
    "--strategy",     "--framework",        "--interface",     "--pull-from",
    "--restarts",     "--checkpoints",      "--servers",       "--code",
    "--slurm-option", "--rescale-interval", "--stall-timeout", "--after"};
void add_job_options(CLI::App& app, JobWords& words);
/// Of `mlenv export slurm|ssh|mpi`.
void add_script_options(CLI::App& app, JobWords& words);

/// What else was asked for.
struct BesideJob {
  const RunWords& words;
  const RunChoice& choice;
  const Life& life;
  std::string runtime;
  bool terminal = false;
  bool jupyter = false;
  bool layer = false;    ///< --keep, --from
  bool outputs = false;  ///< --outputs
  bool grace_given = false;
  bool no_project = false;
  StorageNames storage{};  ///< that mounts may name
};

/// What `mlenv export` is to write.
struct ScriptChoice {
  job::JobScript::Form form = job::JobScript::Form::slurm;
  job::JobScript::With with = job::JobScript::With::builtin;
  fs::path file;  ///< empty: standard output, and nothing beside it
  bool force = false;
};

/// The job's words, understood: without image, command and mounts.
struct JobChoice {
  job::Job job;
  std::string engine;  ///< `local`, `ssh`, `slurm`
  std::string hosts;
  std::vector<std::string> site;
  std::optional<job::CodeWords> code;  ///< nothing: the project, as it lies there
  std::optional<std::uint64_t> ranks;  ///< on each node; nothing: what hosts' slots say, or 1
  bool framework_given = false;        ///< else the image's
  bool dry_run = false;
  std::optional<ScriptChoice> script{};  ///< written in place of a start
  std::vector<std::string> after{};      ///< runs that are to end well before, as they are called
};
/// nullopt: it is no job. Options go before `file`, what a job.yaml says. Throws `usage` for what
/// does not go together, `bad-job`, `bad-mount`, `bad-code`.
std::optional<JobChoice> parse_job_words(const JobWords& words, const BesideJob& beside,
                                         const std::optional<job::JobParts>& file);

/// Whether a file is a job.yaml: it has the key `image`, which no recipe has.
bool is_job_file(const std::string& word);

/// Of `--matrix` with a job.
struct JobMatrix {
  MatrixChoice choice;
  RunBackground background;
  Life life;
};

struct PreparedJob {
  JobChoice choice;
  LocalRun run;  ///< what all ranks share
  Image image;
  RunStart start;
  std::uint64_t most_log_bytes = 0;
  std::string gpus;                         ///< the word of `--gpus`
  std::vector<job::DataSet> data{};         ///< that the recipe declares
  std::optional<ImageFacts> image_facts{};  ///< that nodes are judged by
  std::optional<JobMatrix> matrix{};        ///< it is run for each variation
};
/// Of engine ssh; the job has the ranks then that fit on them.
std::vector<job::Host> hosts_for(JobChoice& choice);
/// The status of the job.
int run_job(Ui& ui, PreparedJob job);

/// The registry that nodes fetch from; nullopt: the sender gives all. Nodes of this machine have
/// its store, and a script carries the image.
std::optional<std::string> pulled_from(const JobChoice& choice);
/// Digest of the code that the nodes would be given, which nothing keeps; nullopt: there is none.
std::optional<std::string> code_of(const Ui& ui, const PreparedJob& job);
/// Takes the code, and what `job` holds for the ranks; without an id.
job::DrivePlan drive_plan(Ui& ui, PreparedJob& job);
/// Writes it as a script.
int export_job(Ui& ui, PreparedJob job);
/// Starts it in the background and answers its id; the status.
int run_job_detached(Ui& ui, PreparedJob job, std::vector<job::Host> hosts);
/// Each variation of `job.matrix` as a job of its own; answers with the matrix's table. Status: as
/// of run_matrix().
int run_job_matrix(Ui& ui, PreparedJob job);
/// The same for a job that Slurm places: submitted, and followed to its end.
int run_in_slurm(Ui& ui, PreparedJob job);

}  // namespace mlenv::cli
