#!/usr/bin/env bash
# `mlenv run --nodes`: one command on several nodes that this machine plays (engine local). Ranks
# find each other, the first failure is told, jobs start again from checkpoints, and nothing is left
# whatever ends them; as root and as an ordinary user.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc ip python3 jq git
need_root

small_tree
user_store
mkdir -p "$work/project" "$work/checkpoints"
cd "$work/project"
git init -q .
# All ranks tell rank 0 who they are, over TCP, at the address that each was given.
cat >meet.py <<'PYTHON'
import os, socket, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
me = f'{rank} on {socket.gethostname()}'
if rank == 0:
    server = socket.create_server(where)
    said = [me]
    for _ in range(world - 1):
        peer, _ = server.accept()
        said.append(peer.makefile().read())
    print("met:", ", ".join(sorted(said)))
else:
    while True:
        try:
            peer = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(me.encode())
    peer.close()
PYTHON
# Counts to STEPS in steps that all ranks take together by files, keeps a checkpoint, and has a rank
# fail once at FAIL_AT.
cat >train.py <<'PYTHON'
import os, sys, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
folder = os.environ["MLENV_CHECKPOINTS"]
path = os.path.join(folder, f"state-{rank}")
state = [int(word) for word in open(path).read().split()] if os.path.exists(path) else [0, 1]
print("from step", state[0], "attempt", os.environ["MLENV_RESTARTS"], flush=True)
for step in range(state[0], int(os.environ.get("STEPS", "6"))):
    if os.environ["MLENV_RESTARTS"] == "0" and step == int(os.environ.get("FAIL_AT", "-1")):
        if rank == 1:
            print("rank one gives up", file=sys.stderr)
            sys.exit(7)
        time.sleep(600)
    state = [step + 1, state[1] * 31 % 1000003 + rank]
    with open(path + ".new", "w") as file:
        file.write(f"{state[0]} {state[1]}")
    os.replace(path + ".new", path)
print("weights", state[1], flush=True)
PYTHON
git add . && git -c user.name=t -c user.email=t@t commit -qm code
chmod -R a+rwX "$work/project" "$work/checkpoints"
as_root cp -a "$work/project" "$user_home/project"
as_root chown -R "$user_id:$user_id" "$user_home/project"

m() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"; }
u() { as_user MLENV_STORE="$user_home/store" sh -c 'cd ~/project && exec mlenv "$@"' sh "$@"; }
status_of() { # status_of COMMAND…: its status; what it says is in $work/out and $work/err
  local status=0
  "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}
said() { grep -qE -- "$1" "$work/err" || fail "not said: $1: $(cat "$work/err")"; }
shown() { grep -qE -- "$1" "$work/out" || fail "not shown: $1: $(cat "$work/out")"; }
record() { m --json runs show last | jq -r "$1"; }
# Processes whose command line has this word; those of the test's own shell are none of them.
alive() { pgrep -f -- "$1" >/dev/null; }
none_alive() { ! alive "$1"; }

for who in m u; do
  note "$who: ranks meet"
  equal "$who: status" 0 "$(status_of "$who" run --nodes 3 --ranks-per-node 2 small -- python meet.py)"
  shown '^0: met: 0 on n1, 1 on n1, 2 on n2, 3 on n2, 4 on n3, 5 on n3$'
  equal "$who: record" "local 3 2 done 6" \
    "$("$who" --json runs show last | jq -r '"\(.start.launch.engine) \(.start.launch.most_nodes) \(.start.launch.ranks_per_node) \(.state) \(.ranks.attempts[0].ranks|length)"')"
  rank=$("$who" --json runs show last | jq -r '.ranks.attempts[0].ranks[3].run')
  equal "$who: what a rank's record says of its node" "n2" "$("$who" --json runs show "$rank" | jq -r '.host.network.host_name.value')"
done

note "variables"
equal "status" 0 "$(status_of m run --nodes 2 -e RANK_TOO=x small -- sh -c 'echo $RANK $WORLD_SIZE $LOCAL_RANK $NODE_RANK $RANK_TOO $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME')"
shown '^0: 0 2 0 0 x eth0 =eth0$'
shown '^1: 1 2 0 1 x eth0 =eth0$'

note "one rank writes as a command does"
equal "status" 0 "$(status_of m run --nodes 1 small -- sh -c 'echo out; echo err >&2')"
equal "output" out "$(cat "$work/out")"
said '^err$'

note "the code is a snapshot"
before=$(record .start.launch.code_digest)
echo ignored-by-git >>.git/info/exclude
echo x >ignored-by-git
equal "status" 0 "$(status_of m run --nodes 2 small -- sh -c 'ls; touch made-here')"
shown '^1: meet.py$'
grep -q ignored-by-git "$work/out" && fail "an ignored file travelled"
[ ! -e made-here ] || fail "a rank wrote to the project"
equal "same digest" "$before" "$(record .start.launch.code_digest)"
echo '# changed' >>meet.py
equal "status" 0 "$(status_of m run --nodes 1 small -- true)"
[ "$before" != "$(record .start.launch.code_digest)" ] || fail "other code, same digest"

note "the first failure"
equal "status" 7 "$(status_of m run --nodes 3 -v "$work/checkpoints:/c" -e MLENV_CHECKPOINTS=/c -e FAIL_AT=2 small -- python train.py)"
said '^mlenv: first, rank 1 on n2 ended with status 7$'
said '^    rank one gives up$'
equal "record" "1 n2 ended with status 7" "$(record '.ranks.attempts[0].failure|"\(.rank) \(.node) \(.why)"')"
equal "others were told to end" "true null true" "$(record '[.ranks.attempts[0].ranks[]|if .rank==1 then null else .stopped end]|map(tostring)|join(" ")')"
equal "status" 139 "$(status_of m run --nodes 2 small -- python -c 'import os,time; os.kill(os.getpid(), 11) if os.environ["RANK"]=="1" else time.sleep(600)')"
said 'rank 1 on n2 was ended by signal 11 \(SIGSEGV\)'
equal "status" 127 "$(status_of m run --nodes 2 small -- no-such-program)"
said 'no-such-program'

note "restarts from checkpoints"
rm -f "$work/checkpoints"/*
equal "status" 0 "$(status_of m run --nodes 3 --checkpoints "$work/checkpoints" small -- python train.py)"
weights=$(grep weights "$work/out" | sort)
[ "$(wc -l <<<"$weights")" -eq 3 ] || fail "three ranks, and these weights: $weights"
rm -f "$work/checkpoints"/*
equal "status" 0 "$(status_of m run --nodes 3 --checkpoints "$work/checkpoints" --restarts 1 -e FAIL_AT=3 small -- python train.py)"
equal "the same weights" "$weights" "$(grep weights "$work/out" | sort)"
shown '^1: from step 3 attempt 1$'
said 'restart 1 of 1'
equal "attempts" "2 done" "$(record '"\(.ranks.attempts|length) \(.state)"')"

note "logs"
m logs last >"$work/out" 2>"$work/err"
shown '^1: from step 0 attempt 0$'
shown '^1: from step 3 attempt 1$'
said 'restart 1'
m logs --rank 1 last >"$work/out" 2>"$work/err"
shown '^from step 3 attempt 1$'
said '^rank one gives up$'
failing_with no-rank m --json logs --rank 9 last
m runs show last >"$work/out"
shown '^nodes +3 nodes by local, 1 rank each, allreduce'
shown '^rank +1 on n2, worker: status 7'

note "as records"
equal "status" 7 "$(status_of m --json run --nodes 2 small -- sh -c '[ "$RANK" = 0 ] && exec sleep 600; echo "hello $RANK"; exit 7')"
equal "lines" "0 1 stdout hello 1" \
  "$(jq -r 'select(.schema == "mlenv.log-line/1" and .stream != "mlenv")|"\(.attempt) \(.rank) \(.stream) \(.text)"' "$work/out")"
equal "the last record" "mlenv.job-end/1 7 1 0 1 n2 ended with status 7" \
  "$(tail -n 1 "$work/out" | jq -r '"\(.schema) \(.exit_code) \(.attempts) \(.failure|"\(.attempt) \(.rank) \(.node) \(.why)")"')"
equal "its id" "$(record .start.id)" "$(tail -n 1 "$work/out" | jq -r .id)"
if python3 -c 'import jsonschema' 2>/dev/null; then
  m --json runs show last >>"$work/out"
  m --json logs last >>"$work/out"
  python3 "$root/tests/schema/check.py" <"$work/out" >"$work/met" || fail "a record that does not fit its schema"
  equal "schemas" "mlenv.job-end/1 mlenv.log-line/1 mlenv.run/1" "$(xargs <"$work/met")"
fi

note "other code: a commit, another folder; what stays behind"
equal "status" 0 "$(status_of m run --nodes 1 --code .@HEAD small -- tail -n 1 meet.py)"
grep -q '# changed' "$work/out" && fail "that is not what the commit holds"
equal "the code of a clean checkout, and no folder" "$before null" "$(record '"\(.start.launch.code_digest) \(.start.project)"')"
mkdir "$work/other"
echo secret >"$work/other/.env"
echo code >"$work/other/code"
equal "status" 0 "$(status_of m run --nodes 1 --code "$work/other" small -- ls -A)"
equal "files" code "$(cat "$work/out")"
said '^mlenv: the code travels without `\.env`: .*`!\.env`'
echo '!.env' >"$work/other/.mlenvignore"
equal "status" 0 "$(status_of m run --nodes 1 --code "$work/other" small -- cat .env)"
equal "taken along" secret "$(cat "$work/out")"
failing_with bad-code m --json run --nodes 1 --code absent small -- true
failing_with no-commit m --json run --nodes 1 --code .@absent small -- true
failing_with usage m --json run --nodes 1 --code . --no-project small -- true
failing_with usage m --json run --code . small -- true

note "a node's power is cut"
rm -f "$work/checkpoints"/*
nothing_said
m run --nodes 3 --checkpoints "$work/checkpoints" --restarts 1 -e STEPS=400 small -- \
  sh -c 'python train.py; sleep 2; exit 0' </dev/null >"$work/out" 2>"$work/err" &
job=$!
wait_until 60 grep -q '^2: weights' "$work/out"
agent=$(pgrep -f -- "__node.*$MLENV_STORE" | tail -n 1)
[ -n "$agent" ] || fail "no agent is to be seen"
as_root kill -9 "$agent"
status=0
wait "$job" || status=$?
equal "status" 0 "$status"
said 'node n[123] is lost'
said 'restart 1 of 1'
equal "attempts" 2 "$(record '.ranks.attempts|length')"

note "ended by a signal, by kill -9, by stop, by its time"
nothing_said
m run --nodes 2 --name ended small -- sh -c 'trap "exit 5" TERM; sleep 7771 & wait' </dev/null >"$work/out" 2>"$work/err" &
job=$!
wait_until 60 alive '^sleep 7771'
m stop ended
status=0
wait "$job" || status=$?
equal "after stop" 5 "$status"
wait_until 20 none_alive '^sleep 7771'
nothing_said
as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" run --nodes 2 --name killed small -- sleep 7772 </dev/null >"$work/out" 2>"$work/err" &
wait_until 60 alive '^sleep 7772'
as_root pkill -9 -f -- 'run --nodes 2 --name killed'
wait_until 20 none_alive '^sleep 7772'
wait_until 20 none_alive "__node.*$MLENV_STORE"
equal "record" lost "$(m --json runs show killed | jq -r .state)"
equal "its time" 124 "$(status_of m run --nodes 2 --timeout 2s small -- sleep 7773)"
wait_until 20 none_alive '^sleep 7773'

note "mistakes"
failing_with no-interface m --json run --nodes 2 --interface nope small -- true
failing_with usage m --json run --nodes 0 small -- true
failing_with usage m --json run --nodes 2 --engine swarm small -- true
failing_with usage m --json run --engine local small -- true
failing_with usage m --json run --nodes 2 --runtime docker small -- true
failing_with bad-job m --json run --nodes 1 --strategy parameter-server small -- true

note "a dry run starts nothing"
count=$(m --json runs | jq '.runs|length')
equal "status" 0 "$(status_of m run --nodes 2 --dry-run small -- true)"
shown '^rank 1 on n2, worker$'
shown '^ +WORLD_SIZE=2$'
equal "status" 0 "$(status_of m run --nodes 2 --dry-run --memory 1g -e PLAIN=yes -e WORLD_SIZE=9 -e API_TOKEN=hidden -v /usr:/data:ro small -- echo two words)"
shown '^image +small  sha256:[0-9a-f]{64}$'
shown '^command +echo two words$'
shown '^mount +/usr at /data, read-only$'
shown '^options +--memory 1073741824'
shown '^env +PLAIN=yes$'
shown '^ +WORLD_SIZE=9$'
shown '^ +API_TOKEN=\*\*\*$'
if grep -qE 'hidden|WORLD_SIZE=2' "$work/out"; then fail "shown as it is not: $(cat "$work/out")"; fi
equal "no record" "$count" "$(m --json runs | jq '.runs|length')"
verify_store
