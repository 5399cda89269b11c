#pragma once
// A job as a bash script that runs where there is no mlenv: what `mlenv export slurm|ssh|mpi`
// writes. A plain function of its arguments, the same bytes for the same job.
//
// Beside the script lies a folder with what it needs, `JobScript::files`:
//   mlenv-node   the program that runs containers on nodes (With::builtin)
//   image/       the image, an OCI layout (but With::pyxis, which takes it from a registry)
//   code.tar     the code, where there is some
//
// The ranks are those of job::plan(), and are told the same variables.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/job/job.hpp"
#include "runner/launch/hosts.hpp"

namespace mlenv::job {

struct JobScript {
  enum class Form { slurm, ssh, mpi };
  enum class With { builtin, pyxis, apptainer };  ///< what runs the containers
  Form form = Form::slurm;
  With with = With::builtin;
  Job job;                         ///< its form: nodes, ranks, strategy, framework, options, limits
  std::string name;                ///< for people
  std::string files;               ///< name of the folder beside the script
  std::string digest;              ///< of the image's manifest
  std::vector<std::string> blobs;  ///< digests of manifest, config, layers
  std::vector<std::string> argv;   ///< empty: the image's own
  /// `K=V`; `K` alone is that of whoever starts the script, as is one that holds_secret().
  std::vector<std::string> env;
  std::vector<Mount> mounts;            ///< sources are of the nodes
  std::string workdir;                  ///< empty: the image's
  std::string code_target;              ///< where the code is seen
  std::optional<std::string> code;      ///< digest of its archive
  std::string gpus;                     ///< as RankStart has it
  std::string program;                  ///< digest of mlenv-node, without `sha256:`
  std::vector<Host> hosts;              ///< of ssh, and of mpi where they are named
  std::vector<std::string> site;        ///< words for sbatch
  std::optional<std::uint64_t> seed{};  ///< of --deterministic; nothing: it is not
  std::vector<std::string> after;       ///< runs that are to end well before, as they are called
};

/// Throws `bad-job` (usage) for a job that no script starts: a number of nodes that may vary, what
/// is of mlenv's own agents (`--rdma`), pyxis without Slurm, `--deterministic` without mlenv-node.
std::string job_script(const JobScript& script);

/// Whether the value of `K=V` is a secret: by the name, or for a login in it. The script then has
/// the name alone.
bool holds_secret(const std::string& variable);

/// `builtin`, `pyxis`, `apptainer`.
std::optional<JobScript::With> script_with(std::string_view word);

}  // namespace mlenv::job
