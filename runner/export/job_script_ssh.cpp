// The script that reaches nodes by ssh.
#include <fmt/format.h>

#include "runner/export/job_script_text.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kHosts = R"sh(
# Nothing is asked at a terminal, a host's key must be known, and no connection is shared, which
# would outlive this script.
ssh_options=(
  -T -a -x -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10
  -o ServerAliveInterval=2 -o ServerAliveCountMax=2 -o ControlMaster=no -o ControlPath=none
  -o ClearAllForwardings=yes -o PermitLocalCommand=no -o RemoteCommand=none -o LogLevel=ERROR
)

# quoted TEXT: one word for any shell.
quoted() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# on NUMBER COMMAND: by a bash on that node that has what `shipped` gives. The shell that calls it
# becomes the ssh.
on() {
  exec ssh "${ssh_options[@]}" -- "${hosts[$1]}" "exec bash -c $(quoted "$(shipped)
$2")"
}
)sh";

constexpr std::string_view kSshReady = R"sh(
# take_files: on a node: takes an image and code from standard input, a tar.
take_files() {
  folder=$(mktemp -d "${XDG_CACHE_HOME:-$HOME/.cache}/mlenv/take.XXXXXX")
  trap 'rm -rf "$folder"' EXIT
  tar -C "$folder" -xf -
  "$(program)" prepare "oci:$folder/image@$image"@code@
}

# make_ready NUMBER: brings to that node what it lacks, and has it describe itself in a file. A shell
# hears a signal only while it waits: each step is in the background, and ends with it.
make_ready() {
  local one wanted=("${blobs[@]:0:2}") members=(image/oci-layout image/index.json)
  trap 'kill $(jobs -rp) 2>/dev/null || true; exit 143' TERM
  on "$1" take_program <"$files/mlenv-node" &
  wait "$!"
  on "$1" "\"\$(program)\" lacks ${blobs[*]}" </dev/null >"$state/lacking.$1" &
  wait "$!"
  # Of these alone, whatever the node says: manifest and config always, the others if it lacks them.
  for one in "${blobs[@]:2}"; do
    if grep -qxF -- "$one" "$state/lacking.$1"; then wanted+=("$one"); fi
  done
  for one in "${wanted[@]}"; do
    case $one in
@lackcode@      *) members+=("image/blobs/sha256/${one#sha256:}") ;;
    esac
  done
  on "$1" take_files < <(tar -C "$files" -cf - "${members[@]}") &
  wait "$!"
  on "$1" "describe_node $1 ${places[$1]} ${reached_at[$1]:-\$(address_of_ssh)}" \
    </dev/null >"$state/said.$1" &
  wait "$!"
  grep "^NODE $1 " "$state/said.$1" >"$state/described.$1" # of itself
}
)sh";

constexpr std::string_view kSshRun = R"sh(
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
alive='' # as long as this descriptor is open ranks run: they end with this script, however it ends
preparing='' # not empty: nodes are made ready
ended=0
stop() {
  local one
  if [ -n "$preparing" ]; then
    for one in $(jobs -rp); do kill -TERM "$one" 2>/dev/null || true; done
  fi
  if [ -n "$alive" ]; then exec {alive}>&-; fi
  alive=''
}
trap 'ended=130; stop' INT
trap 'ended=143; stop' TERM HUP

names=() addresses=() interfaces=() gpus=() # by number of the node
restart=0
echo "$name: $nodes nodes are made ready" >&2
preparing=1
for ((node = 0; node < nodes; node++)); do
  : >"$state/described.$node"
  make_ready "$node" &
done
while [ -n "$(jobs -rp)" ]; do
  if [ "$ended" -ne 0 ]; then stop; fi
  wait -n || true
done
preparing=''
if [ "$ended" -ne 0 ]; then exit "$ended"; fi
for ((node = 0; node < nodes; node++)); do
  if [ -s "$state/described.$node" ]; then continue; fi
  echo "$name: ${places[node]} could not be made ready" >&2
done
take_described "$(cat "$state"/described.*)"
names=("${places[@]}") # as they are called here

# beats: a line every two seconds, as long as `alive` is open and somebody reads them.
beats() {
  local status=255
  trap '' PIPE
  while [ "$status" -gt 128 ] && echo 2>/dev/null; do # of `read`: its time is over
    status=0
    read -rt 2 _ || status=$?
  done <"$state/alive"
}

# rank_by_ssh RANK: to its end, its output with its number before each line.
rank_by_ssh() {
  local status=0
  trap '' INT TERM HUP # `stop` ends it
  on "$(($1 / ranks_per_node))" "rank_here $1" < <(@giveenv@beats) 2>&1 | @label@ || status=$?
  if [ "$status" -eq 255 ]; then touch "$state/broken"; fi
@essential@  if [ "$status" -ne 0 ]; then
    (set -o noclobber && echo "$1 $status" >"$state/first") 2>/dev/null || true
  fi
}

# attempt: all ranks to their end; the status of the first that failed, which ends the others.
attempt() {
  local rank status=0
  if [ "$ended" -ne 0 ]; then return "$ended"; fi
  rm -f "$state"/first "$state"/done* "$state/broken" "$state/alive"
  mkfifo "$state/alive"
  exec {alive}<>"$state/alive"
  for ((rank = 0; rank < world; rank++)); do
    rank_by_ssh "$rank" {alive}>&- &
  done
  while [ -n "$(jobs -rp)" ]; do
    if [ "$ended" -ne 0 ] || [ -e "$state/first" ] || [ -e "$state/done" ]; then stop; fi
    wait -n || true
  done
  stop
  if [ -e "$state/done" ] || [ ! -e "$state/first" ]; then return 0; fi
  read -r rank status <"$state/first"
  echo "$name: first, rank $rank on ${names[rank / ranks_per_node]} ended with status $status" >&2
  return "$status"
}

for ((restart = 0; ; restart++)); do
  status=0
  attempt || status=$?
  if [ "$ended" -ne 0 ]; then status=$ended; fi
  if [ "$status" -eq 0 ] || [ "$ended" -ne 0 ] || [ "$restart" -ge "$restarts" ]; then break; fi
  if [ -e "$state/broken" ]; then
    echo "$name: 255 may be a connection that broke: $((silence + 10)) seconds for the ranks behind it" \
      "to end" >&2
    sleep "$((silence + 10))" &
    wait "$!" || kill "$!" 2>/dev/null || true
  fi
  if [ "$ended" -ne 0 ]; then exit "$ended"; fi
  echo "$name: restart $((restart + 1)) of $restarts" >&2
done
exit "$status"
)sh";

std::string rank_here(const JobScript& script) {
  return replaced_once(R"sh(
# rank_here RANK: on its node. It ends with the connection, also with one that has fallen silent.
rank_here() {
@takeenv@  options+=(--while-open --silence "$silence")
  start_rank "$1"
}
)sh",
                       "@takeenv@", script.env.empty() ? "" : "  take_env\n");
}

}  // namespace

std::string bash_by_ssh(const JobScript& script) {
  std::string text = bash_heading("Nodes");
  text += kHosts;
  text += bash_node(script);
  text += "\naddress_of_ssh() { echo \"${SSH_CONNECTION:-}\" | cut -d' ' -f3; }\n";
  std::string ready = replaced_once(std::string(kSshReady), "@code@",
                                    script.code ? " \"code:$folder/code.tar@$code\"" : "");
  ready = replaced_once(ready, "@lackcode@",
                        script.code ? "      \"$code\") members+=(code.tar) ;;\n" : "");
  text += ready;
  text += bash_heading("Ranks");
  text += bash_tell(script) + bash_rank(script) + rank_here(script) + bash_shipped(script);
  text += bash_heading("The job");
  const bool several = script.job.nodes.most * script.job.ranks_per_node > 1;
  std::string run =
      replaced_once(std::string(kSshRun), "@label@", several ? "sed -u \"s/^/$1: /\"" : "cat");
  run = replaced_once(std::move(run), "@giveenv@", script.env.empty() ? "" : "give_env && ");
  return text + replaced_once(std::move(run), "@essential@", bash_essential(script, "return"));
}

}  // namespace mlenv::job
