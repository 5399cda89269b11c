#!/usr/bin/env bash
# An answer is delivered, or the status says that it was not: on a full disk, on a closed standard
# output, into a file, of a job on nodes. A reader that has enough is no failure.
# shellcheck disable=SC2016  # for other shells
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2034  # for both.sh
long_both=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need busybox python3 jq
need_node_agent
python3 "$root/tests/support/busybox_image.py" "$work/base.tar" hostile/base:v1
"$MLENV" -q load "$work/base.tar" >"$work/digest"
cd "$work"
printf 'name: r\nbase: oci-archive:base.tar\n' >recipe.yaml

# lost STATUS ARGUMENT…: standard output is full.
lost() {
  local expected=$1 status=0
  shift
  "$MLENV" "$@" >/dev/full 2>"$work/err" </dev/null || status=$?
  equal "status of $*" "$expected" "$status"
  grep -q 'cannot write the answer' "$work/err" || fail "$*: $(cat "$work/err")"
  grep -q 'No space left on device' "$work/err" || fail "$*: $(cat "$work/err")"
}

note "every command whose answer finds no room"
failing_with answer-lost sh -c '"$MLENV" --json images >/dev/full'
"$MLENV" run hostile/base:v1 -- true
lost 1 images
lost 1 images --json
lost 1 inspect hostile/base:v1
lost 1 inspect hostile/base:v1 --json
lost 1 facts --json
lost 1 runs
lost 1 runs show last
lost 1 ps --json
lost 1 init --schema
lost 1 completion bash
lost 1 completion zsh
lost 1 explain
lost 1 load base.tar
"$MLENV" tag hostile/base:v1 hostile/other:v1 2>/dev/null
lost 1 build recipe.yaml
lost 1 check hostile/base:v1
lost 1 diff hostile/base:v1 hostile/base:v1
lost 1 store path
lost 1 gc --dry-run
lost 1 help
lost 1 help run
lost 1 --version
lost 1 images --help
lost 1 data show


note "a closed standard output"
closed() { # closed STATUS ARGUMENT…
  local expected=$1 status=0
  shift
  "$MLENV" "$@" >&- 2>"$work/err" </dev/null || status=$?
  equal "status of $* with a closed output" "$expected" "$status"
  grep -q 'Bad file descriptor' "$work/err" || fail "$*: $(cat "$work/err")"
}
closed 1 images
closed 1 inspect hostile/base:v1 --json
closed 1 --version
closed 125 run -d hostile/base:v1 -- true

for runtime in crun runc; do
  note "$runtime: a command that has its own words"
  "$MLENV" run --runtime "$runtime" hostile/base:v1 -- sh -c 'echo lost; exit 7' >/dev/full 2>"$work/err" && fail "the job's failure is lost"
  status=0
  "$MLENV" run --runtime "$runtime" hostile/base:v1 -- sh -c 'exit 0' >/dev/full || status=$?
  equal "status of a job that says nothing" 0 "$status"
  id=$("$MLENV" run --runtime "$runtime" -d hostile/base:v1 -- sh -c 'seq 1 20000')
  "$MLENV" wait "$id" >/dev/null
  lost 1 logs "$id"
  lost 1 logs --json "$id"
  lost 125 wait "$id"
done

note "a job on nodes: its ranks run to their end, their words are kept, and the status tells"
status=0
"$MLENV" run --nodes 2 hostile/base:v1 -- sh -c 'echo rank-words; touch /tmp/x; echo rank-end' \
  >/dev/full 2>"$work/err" </dev/null || status=$?
equal "status of a job whose output finds no room" 125 "$status"
grep -q 'cannot write the answer' "$work/err" || fail "not said: $(cat "$work/err")"
equal "lines that are kept" 4 "$("$MLENV" logs last | grep -cE 'rank-(words|end)$')"
status=0
"$MLENV" run --nodes 2 hostile/base:v1 -- sh -c 'echo rank-words; exit 9' >/dev/full 2>/dev/null || status=$?
equal "status of a job that failed, too" 9 "$status"

note "a reader that has enough"
for python in 'signal.SIG_DFL' 'signal.SIG_IGN'; do
  python3 - "$python" <<'PYTHON' || fail "a closed pipe is a failure that says something"
import os, signal, subprocess, sys
signal.signal(signal.SIGPIPE, eval(sys.argv[1]))
r, w = os.pipe()
os.close(r)
done = subprocess.run([os.environ["MLENV"], "images"], stdout=w, stderr=subprocess.PIPE, restore_signals=False)
sys.exit(0 if done.returncode in (-signal.SIGPIPE, 141) and not done.stderr else f"{done}")
PYTHON
done
"$MLENV" completion bash 2>"$work/err" | head -n 1 >"$work/out" || [ "${PIPESTATUS[0]}" = 141 ]
equal "words of a pipe that is closed" "" "$(cat "$work/err")"

note "files that were asked for"
as_root mkdir "$work/small"
if [ "$who" = root ] && as_root mount -t tmpfs -o size=16k,mode=1777 tmpfs "$work/small"; then
  head -c 16384 /dev/zero >"$work/small/filler" || true
  for words in "init --recipe $work/small/recipe.yaml" "save hostile/base:v1 oci-archive:$work/small/image.tar" \
    "save hostile/base:v1 oci:$work/small/image" "export slurm -o $work/small/job.sh --nodes 1 hostile/base:v1 -- true" \
    "export devcontainer hostile/base:v1 -o $work/small"; do
    status=0
    # shellcheck disable=SC2086  # words
    "$MLENV" $words >"$work/out" 2>"$work/err" </dev/null || status=$?
    equal "status of $words" 1 "$status"
    grep -q 'No space left' "$work/err" || fail "$words: $(cat "$work/err")"
  done
  for path in recipe.yaml image.tar job.sh; do [ ! -e "$work/small/$path" ] || fail "a part of $path is left"; done
fi
note "what is no file stays what it is"
if [ "$who" = root ] && as_root mknod -m 666 "$work/full" c 1 7; then # as /dev/full
  before=$(stat -c '%F %a %i' "$work/full")
  ends_with 1 "$MLENV" save hostile/base:v1 "oci-archive:$work/full"
  ends_with 1 "$MLENV" init --force --recipe "$work/full"
  grep -q 'No space left' "$work/err" || fail "init: $(cat "$work/err")"
  failing_with bad-output "$MLENV" --json export slurm --force -o "$work/full" --nodes 1 hostile/base:v1 -- true
  equal "the device" "$before" "$(stat -c '%F %a %i' "$work/full")"
fi
mkfifo "$work/fifo"
cat "$work/fifo" >"$work/read" &
"$MLENV" init --force --recipe "$work/fifo" 2>"$work/err" </dev/null || fail "into a pipe: $(cat "$work/err")"
wait $!
grep -q '^name:' "$work/read" || fail "nothing came through the pipe"
[ -p "$work/fifo" ] || fail "the pipe is a file now"
