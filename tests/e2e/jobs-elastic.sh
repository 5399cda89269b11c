#!/usr/bin/env bash
# Jobs that go on while nodes or ranks are away. A tiny program on nodes that this machine plays: half
# of the nodes are lost and come back, a worker is started again by itself. With MLENV_TEST_LONG=1 also
# PyTorch on nodes that are reached by ssh, with and without torchrun, and TensorFlow's asynchronous
# parameter servers: the loss stays on course, and each sample counts once.
# shellcheck disable=SC2016 # what stands in single quotes is for others
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/nodes.sh
. "$root/tests/support/nodes.sh"
need runc ip python3 jq
need_root

small_tree
mkdir -p "$work/project" "$work/checkpoints"
cd "$work/project"
cp "$root/tests/support/elastic_program.py" program.py
# parameter-server in its roles, without any framework.
cat >roles.py <<'PYTHON'
import os, pathlib, signal, sys, time
role, place = os.environ["MLENV_ROLE"], pathlib.Path(os.environ["MLENV_CHECKPOINTS"])
(place / f"{role}-{os.environ['RANK']}.{time.time()}").touch()
if role == "worker" and os.environ.get("HASTY"):
    sys.exit("this worker only ever begins")
while role != "chief" or not (place / "enough").exists():
    time.sleep(0.05)
PYTHON

m() { as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@"; }
begin() { # begin OPTION…: a job in the background; what it says is in $work/out and $work/err
  rm -rf "$work/checkpoints"
  mkdir "$work/checkpoints"
  : >"$work/out"
  : >"$work/err"
  "$@" </dev/null >"$work/out" 2>"$work/err" &
  job=$!
}
ends_with() {
  local status=0
  wait "$job" || status=$?
  equal "status ($(tail -n 30 "$work/err"))" "$1" "$status"
}
says() { wait_until "$1" grep -qE -- "$2" "$work/out" "$work/err"; }
# first_of NODE: the first process of a node that this machine plays for this test.
first_of() {
  local pid
  for pid in $(pgrep -x "mlenv-$1"); do
    [ "$(awk '/^NSpid:/ {print $NF}' "/proc/$pid/status")" = 1 ] || continue
    tr '\0' ' ' <"/proc/$pid/environ" | grep -qF "$MLENV_STORE" && echo "$pid" && return
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF "$MLENV_STORE" && echo "$pid" && return
  done
  fail "there is no node $1"
}
begun() { find "$work/checkpoints" -name "$1.*" | wc -l; }
has_begun() { [ "$(begun "$1")" -ge "$2" ]; }
# counts STEPS: each sample of each step was taken once, by the ranks of the attempt that counts: an
# attempt counts up to the step with which the next one began.
counts() { python3 "$root/tests/support/samples_once.py" "$work/checkpoints/samples" "$1" >&2 || fail "samples: $(cat "$work/out")"; }

note "an undisturbed run"
begin m run --nodes 4 --checkpoints "$work/checkpoints" small -- python program.py
ends_with 0
weights=$(grep -o 'weights .*' "$work/out" | sort -u)
equal "one result" 1 "$(wc -l <<<"$weights")"
counts 40

note "half of the nodes are lost, and come back"
begin m run --nodes 2:4 --rescale-interval 3s --checkpoints "$work/checkpoints" -e STEPS=150 small -- \
  sh -c '[ "$MLENV_RESTARTS" != 0 ] && [ "$WORLD_SIZE" = 4 ] || export PAUSE=0.1; exec python program.py'
says 60 'step 5 of 4 ranks'
as_root kill -9 "$(first_of n3)" "$(first_of n4)"
says 20 'going on with 2 of 4 nodes'
says 20 'step [0-9]+ of 2 ranks'
says 40 'ready: the ranks are ended, to begin again on 4 nodes'
says 40 'begins at [0-9]+ of 4 ranks, attempt [2-9]'
ends_with 0
disturbed=$(grep -o 'weights .*' "$work/out" | sort -u)
counts 150
m --json runs show last >"$work/show.json"
equal "who left and who came" "n3 n4, n3 n4" "$(jq -r '.ranks.attempts|"\([.[].left[]]|sort|join(" ")), \([.[].came[]]|sort|join(" "))"' "$work/show.json")"
m runs show last >"$work/show"
grep -qE '^changes +2 nodes left, 2 nodes came$' "$work/show" || fail "not told: $(cat "$work/show")"
begin m run --nodes 1 --checkpoints "$work/checkpoints" -e STEPS=150 small -- python program.py
ends_with 0
equal "the weights of an undisturbed run" "$(grep -o 'weights .*' "$work/out" | sort -u)" "$disturbed"

note "fewer than the least end it"
begin m run --nodes 3:4 small -- sh -c 'echo up; sleep 7791'
says 60 '^3: up'
as_root kill -9 "$(first_of n3)" "$(first_of n4)"
ends_with 125

note "a worker is started again by itself, where it was or when its node is back"
begin m run --nodes 4 --async --checkpoints "$work/checkpoints" small -- python roles.py
wait_until 60 has_begun ps-3 1
wait_until 60 has_begun worker-2 1
as_root kill -9 "$(first_of n3)"
says 20 'rank 2 on n3 .worker. is lost with its node'
wait_until 40 has_begun worker-2 2
touch "$work/checkpoints/enough"
ends_with 0
equal "nobody else began again" "1 1 1" "$(begun chief-0) $(begun worker-1) $(begun ps-3)"
equal "no failure is recorded" "1 null" "$(m --json runs show last | jq -r '"\(.ranks.attempts|length) \(.ranks.attempts[0].failure)"')"
equal "how often each was started again alone" "0 0 1 0" "$(m --json runs show last | jq -r '[.ranks.attempts[0].ranks[].replaced]|join(" ")')"

note "a server that is lost ends the attempt; a worker that only ever begins does in the end"
begin m run --nodes 4 --async --restarts 1 --checkpoints "$work/checkpoints" small -- python roles.py
wait_until 60 has_begun ps-3 1
as_root kill -9 "$(first_of n4)"
says 20 'restart 1 of 1'
wait_until 60 has_begun ps-3 2
touch "$work/checkpoints/enough"
ends_with 0
begin m run --nodes 3 --async --checkpoints "$work/checkpoints" -e HASTY=1 small -- python roles.py
ends_with 1
equal "so often it began" 3 "$(begun worker-1)"

[ "$MLENV_TEST_LONG" = 1 ] || exit 0

note "nodes reached by ssh: two are cut off, and boot again"
nodes_up 4
with_ssh
begin on_head "$MLENV" run --engine ssh --hosts node1,node2,node3,node4 --nodes 2:4 --rescale-interval 3s \
  --checkpoints "$work/checkpoints" -e PAUSE=0.1 -e STEPS=300 small -- python program.py
says 60 'step 5 of 4 ranks'
cut=$SECONDS
power_cut node3
power_cut node4
says 40 'going on with 2 of 4 nodes'
says 30 'step [0-9]+ of 2 ranks'
note "two nodes trained on $((SECONDS - cut)) s after the other two were cut off"
power_on node3
power_on node4
says 60 'begin again on [34] nodes'
says 60 'begins at [0-9]+ of 4 ranks, attempt [2-9]'
ends_with 0
disturbed=$(grep -o 'weights .*' "$work/out" | sort -u)
counts 300
begin m run --nodes 1 --checkpoints "$work/checkpoints" -e STEPS=300 small -- python program.py
ends_with 0
equal "the weights of an undisturbed run" "$(grep -o 'weights .*' "$work/out" | sort -u)" "$disturbed"

cp "$root"/examples/multi-node/*.py .
# close LOSS LOSS BOUND: apart by no more than that part of them.
close() { python3 -c 'import sys; a, b, bound = map(float, sys.argv[1:]); sys.exit(abs(a - b) > bound * abs(b))' "$@"; }
last_loss() { sed -nE 's/.*steps, loss ([0-9.]+) .*/\1/p' "$work/out" | head -n 1; }
# rank_process N: that of the training program itself.
rank_process() {
  local pid
  for pid in $(pgrep -f 'python3? train-'); do
    tr '\0' '\n' <"/proc/$pid/environ" >"$work/environ" 2>/dev/null || continue
    grep -qx "RANK=$1" "$work/environ" || continue
    grep -qF "$work/checkpoints" "/proc/$pid/mountinfo" && echo "$pid" && return
  done
  fail "rank $1 does not run"
}

# lose NODE NODE: as machines whose power is off, until the others train without them: they would else
# be back, and be taken in, before frameworks have begun on a busy machine.
lose() {
  local deadline=$((SECONDS + 240)) name pid
  until grep -q 'of 2 begins at step' "$work/out"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "nobody trains without $*: $(tail -n 30 "$work/out" "$work/err")"
    for name in "$@"; do
      if pid=$(first_of "$name" 2>/dev/null); then as_root kill -9 "$pid" 2>/dev/null || true; fi
    done
    read -rt 0.1 <> <(:) || true
  done
}

# Another number of ranks adds in another order, nothing else.
goes_on() { # goes_on TITLE COMMAND…
  local title=$1 undisturbed
  shift
  begin m run --nodes 4 --checkpoints "$work/checkpoints" debian-pytorch -- "$@" --steps 200 --note-samples
  ends_with 0
  undisturbed=$(last_loss)
  begin m run --nodes 2:4 --rescale-interval 5s --checkpoints "$work/checkpoints" debian-pytorch -- "$@" --steps 200 --pause 0.3 --note-samples
  says 240 'step 20,'
  lose n3 n4
  says 1 'going on with 2 of 4 nodes'
  says 240 'of 4 begins at step [1-9]'
  ends_with 0
  counts 200
  close "$(last_loss)" "$undisturbed" 1e-3 || fail "$title: loss $(last_loss), undisturbed $undisturbed"
  note "$title: loss $(last_loss), undisturbed $undisturbed"
}
shared_image debian-pytorch
goes_on "PyTorch" python3 train-torch.py
# One agent of torchrun's on each node; on Python 3.11 this one wants to be told where output goes, and
# else keeps what it copies to itself until the end.
goes_on "torchrun" sh -c 'PYTHONUNBUFFERED=1 exec torchrun --nnodes "$MLENV_NODES" --nproc_per_node 1 --rdzv_backend c10d \
  --rdzv_endpoint "$MASTER_ADDR:$MASTER_PORT" --rdzv_id "$MLENV_JOB" --redirects 1 --tee 1 "$@"' torchrun train-torch.py

shared_image tensorflow-cpu
# No two of these runs are alike: undisturbed ones end with losses of 0.114 to 0.131.
note "TensorFlow's asynchronous parameter servers: half of the workers killed, a worker's node lost"
async=(m run --nodes 4 --async --checkpoints "$work/checkpoints" --framework tensorflow)
program=(tensorflow-cpu -- python3 train-parameter-server.py --mode async --steps 150 --note-samples)
begin "${async[@]}" "${program[@]}"
ends_with 0
undisturbed=$(last_loss)
begin "${async[@]}" "${program[@]}" --pause 0.2
says 240 'step 20,'
as_root kill -9 "$(rank_process 1)"
says 20 'rank 1 on n2 .worker. was ended by signal 9'
says 60 '^0: step 60,'
wait_until 60 sh -c '[ "$(grep -c "worker 0 serves" "$1")" = 2 ]' sh "$work/out"
as_root kill -9 "$(first_of n3)"
says 20 'rank 2 on n3 .worker. is lost with its node'
ends_with 0
counts 150
close "$(last_loss)" "$undisturbed" 0.15 || fail "loss $(last_loss), undisturbed $undisturbed"
# TensorFlow states that a part is computed at least once.
read -r updates parts < <(sed -nE 's/.*: ([0-9]+) updates for ([0-9]+) parts/\1 \2/p' "$work/out")
if [ "$updates" -lt "$parts" ] || [ "$updates" -gt $((parts + 2)) ]; then fail "$updates updates for $parts parts"; fi
note "loss $(last_loss), undisturbed $undisturbed; $updates updates for $parts parts"

note "and the parameter server"
begin "${async[@]}" --restarts 1 "${program[@]}" --pause 0.1
says 240 'step 20,'
as_root kill -9 "$(rank_process 3)"
says 60 'restart 1 of 1'
says 240 'workers begin at step [1-9]'
ends_with 0
counts 150
close "$(last_loss)" "$undisturbed" 0.15 || fail "loss $(last_loss), undisturbed $undisturbed"
note "loss $(last_loss), undisturbed $undisturbed"
