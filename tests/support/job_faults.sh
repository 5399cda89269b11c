# shellcheck shell=bash
# What tests/e2e/jobs-faults-*.sh have in common: after nodes.sh and census.sh, a bed of three nodes,
# `head` from which jobs are started, and a way to say how a job has to fail.
: "${census_group?census.sh comes first}" "${work:?}" "${root:?}"

# faults_bed: small image, three nodes, a project; `job` runs there, in a folder of `head`'s own.
faults_bed() {
  need runc jq python3 git ss
  need_node_agent
  group_of_its_own
  small_tree
  mkdir -p "$work/project" "$work/shared"
  nodes_up 3
  nodes_have_small
}

# engine NAME: the one that `job` uses from now on.
# shellcheck disable=SC2034 # names: for the tests
engine() {
  engine=$1
  case $engine in
    ssh) engine_words=(--engine ssh --hosts "node1,node2,node3") names=(node1 node2 node3) ;;
    local) engine_words=(--engine local) names=(n1 n2 n3) ;;
    slurm) engine_words=(--engine slurm) names=(node1 node2 node3) ;;
  esac
}
job() { on_head "$MLENV" run --nodes 3 "${engine_words[@]}" "$@"; }

# ends STATUS FIRST OPTION…: the job ends with that status, and the first that mlenv says of its end
# matches FIRST; nothing of it is left.
ends() {
  local expected=$1 first=$2
  shift 2
  local status=0
  job "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
  ended "$status" "$expected" "$first"
}

# ended STATUS EXPECTED FIRST: the same of a job whose words are in $work/out and $work/err.
ended() {
  [ "$1" = "$2" ] || fail "$engine: status $1, not $2: $(tail -n 40 "$work/out" "$work/err")"
  causes >"$work/causes"
  [ -z "$3" ] || head -n 1 "$work/causes" | grep -qE -- "$3" || fail "$engine: not first: $3: $(cat "$work/err" "$work/out")"
  nothing_left "$3, by $engine"
}

# causes: what mlenv says, without what comes of any job. In Slurm it is among the job's own output.
causes() {
  cat "$work/out" "$work/err" | grep -E '^(mlenv: |error: )' |
    grep -vE '^mlenv: (job [0-9]+ of Slurm: |Slurm starts the job again|the nodes differ:|  (notes |blocks)  |a node.s clock|`?clock|the code travels|differ)' || true
}

# begun OPTION…: a job in the background, whose ranks are all there; $running is its process here.
begun() {
  rm -f "$work/shared"/up-*
  job -v "$work/shared:/shared" "$@" </dev/null >"$work/out" 2>"$work/err" &
  running=$!
  (wait_until 60 all_up) || fail "$engine: not begun: $(cat "$work/out" "$work/err")"
}
all_up() { [ -e "$work/shared/up-0" ] && [ -e "$work/shared/up-1" ] && [ -e "$work/shared/up-2" ]; }
# What a rank does that only others can end.
# shellcheck disable=SC2034,SC2016 # for the tests, and for the ranks' shell
waits='touch /shared/up-$RANK; while :; do sleep 0.2; done'

# has_ended FIRST EXPECTED: of the job that was begun.
has_ended() {
  local status=0
  wait "$running" || status=$?
  ended "$status" "$2" "$1"
}

said() { grep -qE -- "$1" "$work/err" "$work/out" || fail "$engine: not said: $1: $(cat "$work/err" "$work/out")"; }
