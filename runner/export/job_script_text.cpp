#include "runner/export/job_script_text.hpp"

#include <fmt/format.h>

#include "runner/job/frameworks.hpp"
#include "runner/job/roles.hpp"
#include "runner/launch/slurm_script.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kGeneralVariables = R"sh(  told=(
    "RANK=$rank" "WORLD_SIZE=$world" "LOCAL_RANK=$local_rank" "LOCAL_WORLD_SIZE=$ranks_per_node"
    "NODE_RANK=$node" "GROUP_RANK=$node" "MASTER_ADDR=${addresses[0]}" "MASTER_PORT=$port"
    "MLENV_JOB=$job" "MLENV_NODE=$node" "MLENV_NODES=$nodes" "MLENV_NODE_NAME=${names[node]}"
    "MLENV_ROLE=$role" "MLENV_RESTARTS=$restart"
    "GLOO_SOCKET_IFNAME=$interface" "NCCL_SOCKET_IFNAME==$interface" # `=`: that name exactly
  )
  if [ "$role" = worker ]; then told+=("MLENV_SHARD=$index" "MLENV_SHARDS=$of_role"); fi
)sh";

constexpr std::string_view kTorch = R"sh(
  # As torchrun tells its processes.
  told+=(
    "GROUP_WORLD_SIZE=$nodes" "ROLE_NAME=$role" "ROLE_RANK=$index" "ROLE_WORLD_SIZE=$of_role"
    "TORCHELASTIC_RUN_ID=$job" "TORCHELASTIC_RESTART_COUNT=$restart"
    "TORCHELASTIC_MAX_RESTARTS=$restarts" TORCHELASTIC_USE_AGENT_STORE=False
    TORCH_NCCL_ASYNC_ERROR_HANDLING=1 "CROSS_RANK=$node" "CROSS_SIZE=$nodes"
    "LOCAL_SIZE=$ranks_per_node" "TP_SOCKET_IFNAME=$interface"
  )
)sh";

constexpr std::string_view kTellJax = R"sh(
  # jax.distributed.initialize() asks the clusters that it knows: Slurm's words need no server.
  told+=(
    "JAX_COORDINATOR_ADDRESS=${addresses[0]}:$((port + 1))" "JAX_COORDINATOR_PORT=$((port + 1))"
    "JAX_NUM_PROCESSES=$world" "JAX_PROCESS_ID=$rank"
    SLURM_JOB_ID=0 "SLURM_STEP_NODELIST=${addresses[0]}" "SLURM_STEP_NUM_NODES=$nodes"
    "SLURM_NTASKS=$world" "SLURM_PROCID=$rank" "SLURM_LOCALID=$local_rank"
  )
  own=$(own_gpus "$local_rank" "${gpus[node]}")
  if [ -n "$own" ]; then told+=("JAX_LOCAL_DEVICE_IDS=$own"); fi
)sh";

constexpr std::string_view kTensorflow = R"sh(
  # TF_CONFIG: the addresses of all tasks by role, and which of them this is. An evaluator is none.
  local tasks cluster='' kind
  for kind in chief ps worker; do
    tasks=''
    for ((other = 0; other < world; other++)); do
      [ "$(role_of "$other")" = "$kind" ] || continue
      tasks+=${tasks:+,}\"${addresses[other / ranks_per_node]}:$((port + 1 + other % ranks_per_node))\"
    done
    if [ -n "$tasks" ]; then cluster+=${cluster:+,}\"$kind\":[$tasks]; fi
  done
  told+=("TF_CONFIG={\"cluster\":{$cluster},\"task\":{\"index\":$index,\"type\":\"$role\"}}")
  # TensorFlow takes all GPUs that it sees.
  own=$(own_gpus "$local_rank" "${gpus[node]}")
  if [ "$ranks_per_node" -gt 1 ] && [ -n "$own" ]; then told+=("CUDA_VISIBLE_DEVICES=$own"); fi
)sh";

constexpr std::string_view kOwnGpus = R"sh(
# own_gpus LOCAL-RANK GPUS: those that are this rank's among those of its node.
own_gpus() {
  local share=$(($2 / ranks_per_node)) one list=''
  if [ "$2" -eq 0 ]; then return; fi
  if [ "$share" -eq 0 ]; then
    echo "$(($1 % $2))"
    return
  fi
  for ((one = $1 * share; one < ($1 + 1) * share; one++)); do list+=${list:+,}$one; done
  echo "$list"
}
)sh";

constexpr std::string_view kNode = R"sh(
# describe_node NUMBER NAME ADDRESS: on that node, whose address may be a name or empty: prints
# `NODE NUMBER NAME ADDRESS INTERFACE GPUS`, where the others reach it and by which interface; `-`
# for what it has not.
describe_node() {
  local address=$3 by=$interface count=$gpus_of_node shown=''
  if [ -n "$by" ]; then
    read -r _ _ _ shown _ < <(ip -o -4 addr show dev "$by") || true
    address=${shown%/*}
  else
    if [ -n "${address//[0-9.]/}" ]; then read -r address _ < <(getent ahostsv4 "$address") || true; fi
    read -r _ by _ < <(ip -o -4 addr show to "$address") || true
  fi
  if [ "$nodes" -gt 1 ] && { [ -z "$by" ] || [ "$by" = lo ]; }; then
    echo "$name: by which interface the others reach $2 (address \`$address\`) is not known: set" \
      "\`interface\` in this script" >&2
    return 1
  fi
  if [ "$count" = all ]; then
    count=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU' || true)
  fi
  echo "NODE $1 $2 ${address:--} ${by:--} $count"
}

# Bash evaluates what stands in subscripts and sums, commands among it: what comes from elsewhere is
# to be a number before it may stand there.
is_number() { [[ $1 =~ ^(0|[1-9][0-9]{0,8})$ ]]; }
is_plain() { [[ $1 =~ ^[A-Za-z0-9._:%@-]+$ ]]; }

# take_described TEXT: what describe_node printed on each node, and nothing else that a node says.
take_described() {
  local line word number one address by count rest
  while read -r line; do
    read -r word number one address by count rest <<<"$line"
    if [ "$word" != NODE ]; then continue; fi
    if ! is_number "$number" || [ "$number" -ge "$nodes" ] || [ -n "${names[number]:-}" ] ||
      ! is_plain "$one" || ! is_plain "$address" || ! is_plain "$by" || ! is_number "$count" ||
      [ -n "$rest" ]; then
      printf '%s: a node says of itself what cannot be: %q\n' "$name" "$line" >&2
      return 1
    fi
    names[number]=$one addresses[number]=${address#-} interfaces[number]=${by#-} gpus[number]=$count
  done <<<"$1"
  if [ "${#names[@]}" -ne "$nodes" ]; then
    echo "$name: ${#names[@]} of $nodes nodes could be made ready" >&2
    return 1
  fi
}
)sh";

constexpr std::string_view kTakeProgram = R"sh(
# program: where mlenv-node lies on a node, under its own digest.
program() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/mlenv/node/$mlenv_node/mlenv-node"; }
whole() { echo "$mlenv_node  $1" | sha256sum --check --status 2>/dev/null; }

# take_program: on a node: takes it from standard input, unless it is there.
take_program() {
  local path new
  path=$(program)
  if whole "$path"; then return; fi
  mkdir -p "${path%/*}"
  new=${path%/*}/.tmp-$(uname -n)-$$
  cat >"$new"
  if ! whole "$new"; then
    rm -f "$new"
    echo "$name: mlenv-node did not arrive whole in ${path%/*}" >&2
    return 1
  fi
  chmod 700 "$new"
  # One that another job has brought meanwhile stays: it may be running.
  ln "$new" "$path" 2>/dev/null || whole "$path" || mv -f "$new" "$path"
  rm -f "$new"
}
)sh";

constexpr std::string_view kStartBuiltin = R"sh(
# start_rank RANK: on its node: a container by mlenv-node, which runs it by runc or crun.
start_rank() {
  local words=() one
  tell "$1"
  for one in "${told[@]}"; do words+=(-e "$one"); done
  if [ "$nodes" -gt 1 ]; then
    for ((one = 0; one < nodes; one++)); do
      words+=(--add-host "${names[one]}:${addresses[one]}")
    done
  fi
@mpi@  "$(program)" run "${words[@]}" "${options[@]}"@envfd@ "$image" -- "${command[@]}"@env@
}
)sh";

constexpr std::string_view kPassMpi =
    R"sh(  # What mpirun tells its processes, and the folder in which they find its daemon.
  while read -r one; do words+=(-e "$one=${!one}"); done < <(compgen -e | grep -E '^(OMPI|PMIX|PRTE|PMI|HYDRA|MPI)_')
  if [ -n "${PMIX_SERVER_TMPDIR:-}" ]; then words+=(-v "$PMIX_SERVER_TMPDIR:$PMIX_SERVER_TMPDIR"); fi
)sh";

constexpr std::string_view kStartApptainer = R"sh(
# start_rank RANK: on its node: a container by apptainer (not tried by mlenv's own tests).
start_rank() {
  local one
  tell "$1"
  # By variables: --env cuts at commas, which TF_CONFIG has.
  for one in "${told[@]}" "${env[@]}"; do export "APPTAINERENV_$one"; done
  apptainer @verb@ "${options[@]}" "$sif" "${command[@]}"
}
)sh";

constexpr std::string_view kStartPyxis = R"sh(
# start_rank RANK: within its container, which pyxis has made (not tried by mlenv's own tests).
start_rank() {
  local one
  tell "$1"
  for one in "${told[@]}" "${env[@]}"; do export "${one?}"; done
  "${command[@]}"
}
)sh";

constexpr std::string_view kRankMain = R"sh(
# rank_main RANK: the first rank that fails leaves its number and status in $state/first.
rank_main() {
  local status=0
  trap : HUP INT TERM USR1 USR2 # they are for the container, which has them too
@takeenv@  start_rank "$1" || status=$?
@essential@  if [ "$status" -ne 0 ]; then
    (set -o noclobber && echo "$1 $status" >"$state/first") 2>/dev/null || true
  fi
  exit "$status"
}
)sh";

constexpr std::string_view kEssential =
    R"sh(  # Workers and servers serve until somebody ends them: the job ends with its @role@.
  if [ "$status" -eq 0 ] && [ "$(role_of "$1")" = @role@ ]; then
    touch "$state/done.$1"
    if [ "$(find "$state" -name 'done.*' | wc -l)" -eq @count@ ]; then
      touch "$state/done"
      @then@
    fi
  fi
)sh";

constexpr std::string_view kTakeEnv = R"sh(
# take_env: `env` as give_env prints it, from standard input, and nothing behind it.
take_env() {
  local one
  env=()
  while IFS= read -r -d '' one && [ -n "$one" ]; do env+=("$one"); done
}
)sh";

std::string replaced_each(std::string text, std::string_view mark, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size()) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

bool has_servers(const Job& job) { return job.strategy == Strategy::parameter_server; }

std::string role_function(const JobScript& script) {
  if (!has_servers(script.job)) return "\nrole_of() { echo worker; }\n";
  std::vector<std::string> roles;
  for (const RankRole& one : roles_of(script.job, script.job.nodes.most)) {
    roles.emplace_back(one.role);
  }
  return "\n# By rank.\n" + bash_array("roles", roles) + "role_of() { echo \"${roles[$1]}\"; }\n";
}

std::string role_lines(const Job& job) {
  if (!has_servers(job)) return "  local role=worker index=$rank of_role=$world\n";
  return R"sh(  local role index=0 of_role=0 other
  role=$(role_of "$rank")
  for ((other = 0; other < world; other++)); do
    [ "$(role_of "$other")" = "$role" ] || continue
    of_role=$((of_role + 1))
    [ "$other" -ge "$rank" ] || index=$((index + 1))
  done
)sh";
}

}  // namespace

BashWord BashWord::quoted(const std::string& text) {
  return {shell_word(text), text.starts_with('-')};
}

std::string bash_array(std::string_view name, const std::vector<std::string>& words) {
  std::vector<BashWord> quoted;
  for (const std::string& word : words) quoted.push_back(BashWord::quoted(word));
  return bash_array(name, quoted);
}

std::string bash_array(std::string_view name, const std::vector<BashWord>& words) {
  constexpr std::size_t kWidth = 100;
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].written;
    // An option stays with its word.
    const bool behind_option = i > 0 && words[i - 1].option;
    const bool fits = lines.back().size() + word.size() + 3 < kWidth;
    if (!lines.back().empty() && !fits && !behind_option) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  if (lines.size() == 1 && lines.front().size() + name.size() < kWidth) {
    return fmt::format("{}=({})\n", name, lines.front());
  }
  std::string text = fmt::format("{}=(\n", name);
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text + ")\n";
}

std::string replaced_once(std::string text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  if (at != std::string::npos) text.replace(at, mark.size(), by);
  return text;
}

std::string bash_heading(std::string_view text) {
  constexpr std::size_t kWidth = 94;
  return fmt::format("\n# --- {} {}\n", text, std::string(kWidth - text.size(), '-'));
}

std::string bash_tell(const JobScript& script) {
  const Job& job = script.job;
  const bool frameworks = job.strategy != Strategy::plain;
  const bool jax = frameworks && job.framework == Framework::jax;
  const bool tensorflow =
      frameworks && (job.framework == Framework::tensorflow || has_servers(job));
  std::string text = role_function(script);
  if (jax || tensorflow) text += kOwnGpus;
  text +=
      "\n# tell RANK: sets `told` to the variables of that rank.\ntell() {\n"
      "  local rank=$1 node=$(($1 / ranks_per_node)) local_rank=$(($1 % ranks_per_node))\n"
      "  local port=$((first_port + restart * ports))\n";
  text += role_lines(job);
  text += jax || tensorflow ? "  local interface=${interfaces[node]} own\n"
                            : "  local interface=${interfaces[node]}\n";
  if (tensorflow && !has_servers(job)) text += "  local other\n";
  text += kGeneralVariables;
  if (job.checkpoints) {
    text += "  told+=(" + shell_word("MLENV_CHECKPOINTS=" + job.checkpoints->target) + ")\n";
  }
  if (frameworks && job.framework == Framework::torch) text += kTorch;
  if (jax) text += kTellJax;
  if (tensorflow) {
    text += jax ? replaced_each(std::string(kTensorflow), "port + 1 +", "port + 2 +") : kTensorflow;
  }
  return text + "}\n";
}

std::string bash_node(const JobScript& script) {
  std::string text{kNode};
  if (script.with == JobScript::With::builtin) text += kTakeProgram;
  return text;
}

std::string bash_rank(const JobScript& script) {
  std::string text;
  switch (script.with) {
    case JobScript::With::pyxis:
      text = kStartPyxis;
      break;
    case JobScript::With::apptainer:
      text = replaced_each(std::string(kStartApptainer), "@verb@",
                           script.argv.empty() ? "run" : "exec");
      break;
    default:
      text = replaced_each(std::string(kStartBuiltin), "@mpi@",
                           script.form == JobScript::Form::mpi ? kPassMpi : "");
  }
  const bool env = !script.env.empty();
  text = replaced_each(replaced_each(std::move(text), "@envfd@", env ? " --env-fd 9" : ""), "@env@",
                       env ? " 9< <(give_env)" : "");
  if (env) text = std::string(kTakeEnv) + text;
  if (script.form == JobScript::Form::ssh) return text;
  std::string main =
      replaced_each(std::string(kRankMain), "@takeenv@", env ? "  take_env <\"$state/env\"\n" : "");
  return text + replaced_each(std::move(main), "@essential@", bash_essential(script, "exit 1"));
}

std::string bash_essential(const JobScript& script, std::string_view then) {
  if (!has_servers(script.job)) return "";
  const std::string role = script.job.roles.chief ? "chief" : "worker";
  std::size_t count = 0;
  for (const RankRole& one : roles_of(script.job, script.job.nodes.most)) {
    if (one.role == role) ++count;
  }
  std::string text = replaced_each(std::string(kEssential), "@role@", role);
  return replaced_each(replaced_each(text, "@count@", std::to_string(count)), "@then@", then);
}

std::string bash_shipped(const JobScript& script) {
  const bool builtin = script.with == JobScript::With::builtin;
  std::vector<std::string> variables = {
      "name",    "image", "nodes",      "ranks_per_node", "world",        "restarts",
      "restart", "ports", "first_port", "interface",      "gpus_of_node", "options",
      "command", "job",   "names",      "addresses",      "interfaces",   "gpus"};
  std::vector<std::string> functions = {"role_of", "tell", "describe_node", "start_rank"};
  const Job& job = script.job;
  const bool frameworks = job.strategy != Strategy::plain;
  if (has_servers(job)) variables.emplace_back("roles");
  if (frameworks && (job.framework == Framework::jax || job.framework == Framework::tensorflow ||
                     has_servers(job))) {
    functions.emplace_back("own_gpus");
  }
  if (builtin) {
    variables.emplace_back("mlenv_node");
    functions.insert(functions.end(), {"program", "whole", "take_program"});
  } else if (script.env.empty()) {
    variables.emplace_back("env");
  }
  if (!script.env.empty()) {
    functions.emplace_back("take_env");
    functions.emplace_back("give_env");
  }
  if (script.with == JobScript::With::apptainer) variables.emplace_back("sif");
  if (script.code) variables.emplace_back("code");
  if (script.form == JobScript::Form::ssh) {
    variables.emplace_back("silence");
    functions.insert(functions.end(), {"take_files", "address_of_ssh", "rank_here"});
  } else {
    variables.insert(variables.end(), {"files", "state"});
    functions.emplace_back("rank_main");
    functions.emplace_back("make_ready");
    functions.emplace_back("number");
    functions.emplace_back("place");
  }
  const auto lines = [](std::string_view command, const std::vector<std::string>& words) {
    constexpr std::size_t kWidth = 96;
    std::string text = "  " + std::string(command);
    std::size_t length = text.size();
    for (const std::string& word : words) {
      if (length + word.size() > kWidth) {
        text += " \\\n   ";
        length = 3;
      }
      text += " " + word;
      length += word.size() + 1;
    }
    return text + "\n";
  };
  return "\n# shipped: settings and functions of this script, for a shell elsewhere.\n"
         "shipped() {\n  echo 'set -euo pipefail'\n" +
         lines("declare -p", variables) + lines("declare -f", functions) + "}\n";
}

}  // namespace mlenv::job
