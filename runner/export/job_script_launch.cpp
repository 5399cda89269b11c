// Scripts in which one command starts processes on all nodes: Slurm's srun, MPI's mpirun.
#include <fmt/format.h>

#include "runner/export/job_script_text.hpp"
#include "runner/launch/slurm_script.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kSlurmPlace = R"sh(
# everywhere PER-NODE COMMAND [SRUN-OPTION…]: as so many processes on each node, each of them a bash
# that has what `shipped` gives. All of a node's share for each process: GPUs that are given to
# tasks one by one do not see their peers. The shell that calls it becomes the srun.
everywhere() {
  exec srun --nodes="$nodes" --ntasks="$((nodes * $1))" --ntasks-per-node="$1" --distribution=block \
    --mem=0 --cpu-bind=none --mpi=none --unbuffered --kill-on-bad-exit=1 --chdir=/ "${@:3}" \
    bash -c "$(shipped)
$2"
}
number() { echo "$((SLURM_NODEID * $1 + SLURM_LOCALID))"; } # of this process, PER-NODE
place() { echo "${SLURMD_NODENAME:-$(uname -n)}"; }          # what this node is called

# pass_on: SIGTERM to what runs everywhere. A srun that hears it would kill all at once.
pass_on() { scancel --signal=TERM "$job" 2>/dev/null || true; }
)sh";

constexpr std::string_view kMpiPlace = R"sh(
# everywhere PER-NODE COMMAND: as so many processes on each node, each of them a bash that has what
# `shipped` gives. The words are those of Open MPI; MPICH and Intel MPI have others. The shell that
# calls it becomes the mpirun.
mpirun=${MPIRUN:-mpirun}
everywhere() {
  local words=()
  case $("$mpirun" --version 2>&1) in
    *'Open MPI'* | *OpenRTE* | *PRRTE*)
      words=(--map-by "ppr:$1:node" --rank-by slot --bind-to none)
      if [ "${#hosts[@]}" -gt 0 ]; then words+=(--host "$(printf "%s:$1," "${hosts[@]}")"); fi
      ;;
    *)
      words=(-ppn "$1")
      if [ "${#hosts[@]}" -gt 0 ]; then words+=(-hosts "$(printf '%s,' "${hosts[@]}")"); fi
      ;;
  esac
  exec "$mpirun" "${words[@]/%,/}" -np "$((nodes * $1))" bash -c "$(shipped)
$2"
}
number() { echo "${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-$PMI_RANK}}"; } # of this process
place() { uname -n; }                                                  # what this node is called

# pass_on: SIGTERM to what runs everywhere.
pass_on() { if [ -n "$launcher" ]; then kill -TERM "$launcher" 2>/dev/null || true; fi; }
)sh";

constexpr std::string_view kReadyBuiltin = R"sh(
# make_ready: on each node: mlenv-node, the image and the code, each only where it is absent.
make_ready() {
  take_program <"$files/mlenv-node"
  "$(program)" prepare "oci:$files/image@$image"@code@
  describe_node "$(number 1)" "$(place)" "$(place)"
}
)sh";

constexpr std::string_view kReadyOther = R"sh(
make_ready() { describe_node "$(number 1)" "$(place)" "$(place)"; }
)sh";

constexpr std::string_view kSharedState = R"sh(
# What ranks leave for each other: on storage that all nodes share.
state=$files/state-$job
mkdir -p "$state"
@giveenv@trap 'rm -rf "$state"' EXIT
launcher='' # the process that started the others
ended=0
trap 'ended=143; pass_on' TERM # nothing is started any more
)sh";

constexpr std::string_view kSif = R"sh(
# The image as apptainer has it, once.
sif=$files/${image#sha256:}.sif
if [ ! -e "$sif" ]; then apptainer build "$sif" "oci:$files/image"; fi
)sh";

constexpr std::string_view kCodeFolder = R"sh(
# The code, unpacked for this job alone.
mkdir "$state/code"
tar -xf "$files/code.tar" -C "$state/code"
)sh";

constexpr std::string_view kLaunchRun = R"sh(
# wait_for PROCESS: what started the others, and its status, though signals come meanwhile.
wait_for() {
  local status=0
  launcher=$1
  if [ "$ended" -ne 0 ]; then pass_on; fi # it came in between
  while :; do
    if wait "$1"; then status=0; else status=$?; fi
    if ! kill -0 "$1" 2>/dev/null; then break; fi
  done
  launcher=''
  return "$status"
}

names=() addresses=() interfaces=() gpus=() # by number of the node
restart=0
echo "$name: $nodes nodes are made ready" >&2
everywhere 1 make_ready >"$state/described" &
wait_for "$!" || true # what failed has said so, and did not describe
if [ "$ended" -ne 0 ]; then exit "$ended"; fi
take_described "$(cat "$state/described")"

# attempt: all ranks to their end; the status of the first that failed.
attempt() {
  local status=0 rank failed
  if [ "$ended" -ne 0 ]; then return "$ended"; fi
  rm -f "$state"/first "$state"/done*
  everywhere "$ranks_per_node" "rank_main \"\$(number $ranks_per_node)\""@srun@ &
  wait_for "$!" || status=$?
  if [ -e "$state/done" ]; then return 0; fi
  if [ -e "$state/first" ]; then
    read -r rank failed <"$state/first" || true
    if is_number "$rank" && [ "$rank" -lt "$world" ] && is_number "$failed"; then
      echo "$name: first, rank $rank on ${names[rank / ranks_per_node]} ended with status $failed" >&2
      if [ "$failed" -gt 0 ] && [ "$failed" -lt 256 ]; then status=$failed; fi
    fi
  fi
  return "$status"
}

for ((restart = 0; ; restart++)); do
  status=0
  attempt || status=$?
@ended@  if [ "$status" -eq 0 ] || [ "$ended" -ne 0 ] || [ "$restart" -ge "$restarts" ]; then break; fi
  echo "$name: restart $((restart + 1)) of $restarts" >&2
done
exit "$status"
)sh";

/// Of srun, beside those that everywhere() has.
std::string srun_words(const JobScript& script) {
  if (script.form != JobScript::Form::slurm) return "";
  std::string words = script.job.nodes.most * script.job.ranks_per_node > 1 ? " --label" : "";
  return script.with == JobScript::With::pyxis ? words + " \"${options[@]}\"" : words;
}

std::string mount_argument(const Mount& mount) {
  return mount.source.string() + ":" + mount.target + (mount.read_only ? ":ro" : "");
}

/// Options that name folders of this job.
std::string late_options(const JobScript& script) {
  if (script.with == JobScript::With::apptainer && script.code) {
    return "options+=(--bind \"$state/code:\"" + shell_word(script.code_target) + ")\n";
  }
  if (script.with != JobScript::With::pyxis) return "";
  std::string text = "\nmounts=$state:$state\n";
  if (script.code) text += "mounts+=\",$state/code:\"" + shell_word(script.code_target) + "\n";
  for (const Mount& one : script.mounts) {
    text += "mounts+=," + shell_word(mount_argument(one)) + "\n";
  }
  return text + "options+=(\"--container-mounts=$mounts\")\n";
}

}  // namespace

std::string bash_by_launcher(const JobScript& script) {
  const bool slurm = script.form == JobScript::Form::slurm;
  const bool builtin = script.with == JobScript::With::builtin;
  std::string text = bash_heading("Nodes");
  text += slurm ? kSlurmPlace : kMpiPlace;
  text += bash_node(script);
  text += builtin ? replaced_once(std::string(kReadyBuiltin), "@code@",
                                  script.code ? " \"code:$files/code.tar@$code\"" : "")
                  : std::string(kReadyOther);
  text += bash_heading("Ranks");
  text += bash_tell(script) + bash_rank(script) + bash_shipped(script);
  text += bash_heading("The job");
  text += replaced_once(std::string(kSharedState), "@giveenv@",
                        script.env.empty() ? ""
                                           : "chmod 700 \"$state\"\n"
                                             "(umask 077 && give_env >\"$state/env\")\n");
  if (script.with == JobScript::With::apptainer) text += kSif;
  if (script.code && !builtin) text += kCodeFolder;
  text += late_options(script);
  std::string run = replaced_once(std::string(kLaunchRun), "@srun@", srun_words(script));
  // What mpirun makes of a signal says nothing of the ranks.
  constexpr std::string_view kEnded = "  if [ \"$ended\" -ne 0 ]; then status=$ended; fi\n";
  return text + replaced_once(std::move(run), "@ended@", slurm ? "" : kEnded);
}

}  // namespace mlenv::job
