#include "runner/export/job_script.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "recipes/logins.hpp"
#include "recipes/text.hpp"
#include "runner/export/job_script_text.hpp"
#include "runner/job/frameworks.hpp"
#include "runner/job/words.hpp"
#include "runner/launch/slurm_script.hpp"
#include "runner/node/node_gpus.hpp"
#include "runner/node/run_command.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::job {
namespace {

using Form = JobScript::Form;
using With = JobScript::With;

Error unscriptable(const JobScript& script, std::string_view what) {
  constexpr const char* kForms[] = {"slurm", "ssh", "mpi"};
  return usage_error("bad-job", "{} cannot be in a script of `mlenv export {}`", what,
                     kForms[static_cast<int>(script.form)]);
}

void check_script(const JobScript& script) {
  const NodeCount& nodes = script.job.nodes;
  if (nodes.least != nodes.most) {
    throw unscriptable(script, fmt::format("`--nodes {}`", text_of(nodes)))
        .because("only mlenv's own controller goes on with fewer nodes")
        .hint(fmt::format("`--nodes {}`", nodes.most));
  }
  if (script.job.strategy == Strategy::mpi && script.form != Form::mpi) {
    throw unscriptable(script, "a job by MPI")
        .because("its containers reach each other by mlenv's controller")
        .hint("`mlenv export mpi`, where the site's mpirun starts the ranks");
  }
  if (script.job.roles.async) {
    throw unscriptable(script, "`--async`")
        .because("only mlenv's own controller starts one rank again by itself");
  }
  if (script.job.stall_timeout) {
    throw unscriptable(script, "`--stall-timeout`")
        .because("only mlenv's own controller watches what ranks do");
  }
  if (script.job.preflight) {
    throw unscriptable(script, "`--preflight`")
        .hint("`mlenv preflight` measures the links beforehand");
  }
  if (script.job.options.rdma) {
    throw unscriptable(script, "`--rdma`").hint("`mlenv run` passes these devices on");
  }
  if (script.with == With::pyxis && script.form != Form::slurm) {
    throw unscriptable(script, "`--with pyxis`").because("pyxis is a plugin of Slurm's");
  }
  if (script.with != With::builtin && script.form == Form::ssh) {
    throw unscriptable(script, "`--with apptainer`")
        .because("what is copied to nodes is what mlenv-node needs");
  }
  if (script.with != With::builtin && script.seed) {
    throw unscriptable(script, fmt::format("`--deterministic` with `--with {}`",
                                           script.with == With::pyxis ? "pyxis" : "apptainer"))
        .because("it is mlenv-node that brings what is set, a file of Python's among it")
        .hint("leave `--with` out, or set the variables of docs/reproduce.md by `-e`");
  }
  if (script.with == With::pyxis && script.argv.empty()) {
    throw unscriptable(script, "a job without a command").hint("say which, behind `--`");
  }
  if (script.form == Form::ssh && script.hosts.size() < nodes.most) {
    throw usage_error("bad-hosts", "the job needs {} nodes, and there are {} hosts", nodes.most,
                      script.hosts.size())
        .hint("name more in `--hosts`, or take fewer `--nodes`");
  }
}

constexpr std::string_view kNeeds[] = {
    "#   mlenv-node   a program without shared libraries that runs containers by runc or crun\n",
    "#   image/       the image, an OCI layout\n", "#   code.tar     the code\n"};

/// Whether those runs have ended is known to mlenv, where the script is not.
std::string after_text(const JobScript& script) {
  if (script.after.empty()) return "";
  std::string text = fmt::format(
      "# It is to start once {} ended well, which this script does not see to.\n",
      printable(join(script.after, ", ")) + (script.after.size() > 1 ? " have" : " has"));
  if (script.form == Form::slurm) {
    text +=
        "# Where Slurm runs them: `sbatch --dependency=afterok:ID --kill-on-invalid-dep=yes "
        "FILE`.\n";
  }
  return text;
}

std::string head(const JobScript& script) {
  const NodeCount& nodes = script.job.nodes;
  std::string text = fmt::format("# {} on {} node{}, {} on each, written by `mlenv export`.\n",
                                 printable(script.name), nodes.most, nodes.most == 1 ? "" : "s",
                                 script.job.ranks_per_node == 1
                                     ? "one rank"
                                     : fmt::format("{} ranks", script.job.ranks_per_node));
  switch (script.form) {
    case Form::slurm:
      text += "# No mlenv is needed to run it: `sbatch FILE`, in the folder where it lies.\n";
      break;
    case Form::ssh:
      text +=
          "# No mlenv is needed to run it: `bash FILE`, with bash 4.4 or newer, from a machine "
          "that reaches the hosts by ssh.\n";
      break;
    case Form::mpi:
      text += "# No mlenv is needed to run it: `bash FILE`, where mpirun reaches the nodes.\n";
  }
  text += after_text(script);
  const bool image = script.with != With::pyxis;
  if (!image && !script.code) return text;
  text += fmt::format("# What it needs lies in `{}` beside it{}:\n", printable(script.files),
                      script.form == Form::ssh ? "" : ", on storage that all nodes share");
  if (script.with == With::builtin) text += kNeeds[0];
  if (image) text += kNeeds[1];
  if (script.code) text += kNeeds[2];
  return text;
}

std::string directives(const JobScript& script) {
  std::vector<std::string> words = {"--job-name=" + slurm_name(script.name)};
  for (std::string& word : slurm_resources(script.job, script.job.ranks_per_node)) {
    words.push_back(std::move(word));
  }
  words.emplace_back("--requeue");
  words.emplace_back("--open-mode=append");
  // To this script, which passes it on: it has to know that nothing is to be started again.
  words.push_back(fmt::format("--signal=B:TERM@{}", slurm_warning(script.job).count()));
  words.insert(words.end(), script.site.begin(), script.site.end());
  std::string text;
  for (const std::string& word : words) text += slurm_directive(word);
  return text;
}

/// A variable of the caller's is looked up when the script is started, as is one that by its name,
/// or for a login in an address, is a secret: a script is copied, shown and kept.
BashWord variable_word(const std::string& one) {
  const std::string name = one.substr(0, one.find('='));
  if (name.size() < one.size() && !holds_secret(one)) return BashWord::quoted(one);
  if (!is_env_name(name)) {
    throw usage_error("bad-job", "the variable `{}` cannot be in a script", printable(name))
        .because(
            "its value is looked up where the script is started, and a shell has no variable of "
            "that name")
        .hint("give it a name of letters, digits and `_` that does not begin with a digit");
  }
  return BashWord::code(
      fmt::format("\"{0}=${{{0}?is to be passed on to ranks, and is not set}}\"", name));
}

/// To ranks by a pipe or a file of their user's: what stands in arguments is seen by every user of
/// a machine.
constexpr std::string_view kGiveEnv =
    "give_env() { printf '%s\\0' \"${env[@]}\" ''; } # to ranks, and to nobody who looks at "
    "arguments\n";

std::string mount_word(const Mount& mount) {
  return mount.source.string() + ":" + mount.target + (mount.read_only ? ":ro" : "");
}

std::vector<std::string> builtin_options(const JobScript& script) {
  std::vector<std::string> words = option_words(script.job.options);
  for (const Mount& one : script.mounts) words.insert(words.end(), {"-v", mount_word(one)});
  if (!script.workdir.empty()) words.insert(words.end(), {"-w", script.workdir});
  if (!script.gpus.empty()) words.insert(words.end(), {"--gpus", script.gpus});
  if (script.code) words.insert(words.end(), {"--code", *script.code});
  if (script.seed) {
    words.insert(words.end(), {"--deterministic", std::to_string(*script.seed)});
  }
  return words;
}

std::vector<std::string> apptainer_options(const JobScript& script, const std::string& workdir) {
  std::vector<std::string> words = {"--contain", "--cleanenv", "--writable-tmpfs"};
  if (!script.gpus.empty()) words.emplace_back("--nv");
  for (const Mount& one : script.mounts) words.insert(words.end(), {"--bind", mount_word(one)});
  words.insert(words.end(), {"--pwd", workdir});
  return words;
}

std::vector<BashWord> pyxis_options(const std::string& workdir) {
  return {
      BashWord::code("\"--container-image=${IMAGE:?is to be the image in a registry, where mlenv "
                     "push wrote it: REGISTRY#NAME:TAG}\""),
      BashWord::quoted("--container-workdir=" + workdir),
      BashWord::quoted("--no-container-mount-home"), BashWord::quoted("--no-container-entrypoint"),
      BashWord::quoted("--container-writable")};
}

std::string options_array(const JobScript& script) {
  const std::string& workdir = script.workdir.empty() ? script.code_target : script.workdir;
  switch (script.with) {
    case With::builtin:
      return bash_array("options", builtin_options(script));
    case With::pyxis:
      return bash_array("options", pyxis_options(workdir));
    case With::apptainer:
      break;
  }
  return bash_array("options", apptainer_options(script, workdir));
}

/// Of each node: a number, or `all` that a node has.
std::string gpus_of_node(const JobScript& script) {
  const GpuChoice choice = asked_gpus(script.gpus);
  if (choice.kind == GpuChoice::Kind::none) return "0";
  if (choice.kind == GpuChoice::Kind::count) return std::to_string(choice.count);
  if (choice.kind == GpuChoice::Kind::named) return std::to_string(choice.devices.size());
  return "all";
}

std::string ssh_address(const Host& host) {
  if (host.user.empty() && host.port == 0) return host.name;
  std::string text = "ssh://" + (host.user.empty() ? "" : host.user + "@") + host.name;
  return host.port == 0 ? text : text + ":" + std::to_string(host.port);
}

std::string hosts_part(const JobScript& script) {
  std::vector<std::string> hosts;
  std::vector<std::string> places;
  std::vector<std::string> addresses;
  for (const Host& one : script.hosts) {
    if (hosts.size() == script.job.nodes.most) break;
    hosts.push_back(script.form == Form::ssh ? ssh_address(one) : one.name);
    places.push_back(one.name);
    addresses.push_back(one.address);
  }
  if (script.form == Form::mpi) {
    return "# For mpirun; none: those of its host file, or of the batch system.\n" +
           bash_array("hosts", hosts);
  }
  return "# As ssh is told them; what they are called; where the others reach them, if not "
         "there\n" +
         bash_array("hosts", hosts) + bash_array("places", places) +
         bash_array("reached_at", addresses);
}

std::string files_of(const JobScript& script) {
  const std::string folder = script.form == Form::slurm
                                 ? "${SLURM_SUBMIT_DIR:-$PWD}"
                                 : "$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)";
  const char* const sign = script.with == With::builtin ? "mlenv-node" : "image/index.json";
  std::string text =
      fmt::format("files=${{MLENV_FILES:-{}/{}}}\n", folder, shell_word(script.files));
  if (script.with == With::pyxis && !script.code) return text + "mkdir -p \"$files\"\n";
  if (script.with == With::pyxis) return text;
  return text + fmt::format(
                    "if [ ! -e \"$files/{}\" ]; then\n"
                    "  echo \"what this job needs is not in $files: set MLENV_FILES\" >&2\n"
                    "  exit 125\nfi\n",
                    sign);
}

std::string settings(const JobScript& script) {
  const Job& job = script.job;
  std::string text = bash_heading("What runs");
  text += "name=" + shell_word(script.name) + "\n";
  text += "image=" + script.digest + " # of its manifest\n";
  if (script.code) text += "code=" + *script.code + "\n";
  if (script.with == With::builtin) text += "mlenv_node=" + script.program + " # SHA-256\n";
  text += fmt::format("nodes={} ranks_per_node={} restarts={}\n", job.nodes.most,
                      job.ranks_per_node, job.restarts);
  text += "world=$((nodes * ranks_per_node))\n";
  text += fmt::format("gpus_of_node={}\n", gpus_of_node(script));
  text += "interface=" + (job.interface.empty() ? "''" : shell_word(job.interface)) +
          " # by which nodes meet; empty: the one that has the node's address\n";
  const bool builtin = script.with == With::builtin;
  text += "# Of each container.\n" + options_array(script);
  if (!builtin || !script.env.empty()) {
    std::vector<BashWord> env;
    for (const std::string& one : script.env) env.push_back(variable_word(one));
    text += bash_array("env", env);
    if (!env.empty()) text += kGiveEnv;
  }
  text += bash_array("command", script.argv);
  if (script.form != Form::slurm) text += hosts_part(script);
  if (script.form == Form::ssh) {
    std::vector<std::string> blobs = script.blobs;
    if (script.code) blobs.push_back(*script.code);
    text += "# Manifest and config of the image, its layers, the code.\n" +
            bash_array("blobs", blobs) +
            "silence=10 # seconds without a beat from here until a node ends its ranks\n";
  }
  return text;
}

std::string places_part(const JobScript& script) {
  std::string text = bash_heading("Where things are");
  text += files_of(script);
  text += fmt::format("ports={} # that each node needs\n", ports_needed(script.job));
  if (script.form == Form::slurm) {
    text +=
        "job=${SLURM_JOB_ID:?this is a script for sbatch}\n"
        "first_port=$((20000 + job * ports % 12000))\n"
        "# srun no longer takes this over by itself.\n"
        "export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}\n";
    return text;
  }
  text += "job=$(date -u +%Y%m%d-%H%M%S)-$$\nfirst_port=$((20000 + RANDOM % 12000))\n";
  return text;
}

/// Slurm knows limits of time by itself.
std::string deadline(const JobScript& script) {
  if (!script.job.deadline || script.form == Form::slurm) return "";
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(*script.job.deadline).count();
  // A second signal would have mpirun leave the nodes alone: this script passes on the one.
  return fmt::format(
      "\n# The deadline: status 124.\n"
      "if [ -z \"${{MLENV_DEADLINE:-}}\" ]; then\n"
      "  MLENV_DEADLINE=1 exec timeout {}--kill-after=60 {} \"$BASH\" \"$0\" \"$@\"\nfi\n",
      script.form == Form::mpi ? "--foreground " : "", seconds);
}

}  // namespace

std::string job_script(const JobScript& script) {
  check_script(script);
  std::string text = "#!/bin/bash\n";
  if (script.form == Form::slurm) text += directives(script);
  text += "#\n" + head(script) +
          "#\n# Settings and functions are used by shells on the nodes; what stands in single "
          "quotes is theirs.\n"
          "# shellcheck disable=SC2016,SC2034,SC2317\nset -euo pipefail\n";
  text += deadline(script) + settings(script) + places_part(script);
  return text + (script.form == Form::ssh ? bash_by_ssh(script) : bash_by_launcher(script));
}

bool holds_secret(const std::string& variable) {
  const std::size_t end = variable.find('=');
  if (end == std::string::npos) return false;
  const std::string value = variable.substr(end + 1);
  return is_secret_name(variable.substr(0, end)) || without_logins(value) != value;
}

std::optional<JobScript::With> script_with(std::string_view word) {
  if (word == "builtin") return With::builtin;
  if (word == "pyxis") return With::pyxis;
  if (word == "apptainer") return With::apptainer;
  return std::nullopt;
}

}  // namespace mlenv::job
