#!/usr/bin/env bash
# A program that puts a link in the place of what is mounted, where it may write: in the project. Neither the next
# attempt of the run, nor that of a job's rank, nor the next variation of a matrix, nor the run when it is reproduced
# mounts what the link leads to; a data set is mounted from where it was verified; a link of the person's own goes on
# working. By root and by an ordinary user, crun and runc.
# shellcheck disable=SC2016  # for the shells inside
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/hostile.sh
. "$root/tests/support/hostile.sh"
need jq
beside=1
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"

hostile_image plain
mkdir "$work/p"
cd "$work/p"
fresh() {
  rm -rf data old corpus shared out real go
  mkdir data corpus shared shared/checkpoints
  echo 1 >data/a
  echo 1 >corpus/a
}
# refused WHAT COMMAND…: by the one error, and nothing of the machine is seen or changed.
refused() {
  tried "$@"
  grep -q 'cannot be mounted at .* again' "$work/err" || fail "$1: $(cat "$work/err")"
}
swap() { # swap FOLDER AT: what the program does
  echo "cat $2/secret; touch $2/escaped; mv $1 old && ln -s $host $1; exit 1"
}

cp "$work/plain.tar" base.tar
digest=$(printf '%s  %s\0' "$(printf '1\n' | sha256sum | cut -d' ' -f1)" a | sha256sum | cut -d' ' -f1)
printf 'name: x\nbase: oci-archive:base.tar\nbytecode: false\ndata: {corpus: {from: ./corpus, digest: "sha256:%s"}}\n' \
  "$digest" >recipe.yaml
fresh
"$MLENV" -q lock >/dev/null

for runtime in crun runc; do
  run() { "$MLENV" run --runtime "$runtime" --no-check "$@"; }
  note "$runtime: another attempt"
  fresh
  refused "a folder" run --restart on-failure:1 -v ./data:/data hostile/plain:v1 -- /bin/sh -c "$(swap data /data)"
  fresh
  refused "a data set" run --restart on-failure:1 recipe.yaml -- /bin/sh -c "cd /workspace; $(swap corpus /data/corpus)"
  fresh
  refused "a file" run --restart on-failure:1 -v ./data/a:/a hostile/plain:v1 -- \
    /bin/sh -c "cat /a; mv data/a old; ln -s $host/secret data/a; exit 1"
  fresh
  failing_with mount-changed "$MLENV" --json run --runtime "$runtime" --no-check --restart on-failure:1 -v ./data:/data \
    hostile/plain:v1 -- /bin/sh -c "$(swap data /data)"

  note "$runtime: what is made anew is mounted, and so is what lies at a link of the person's own"
  fresh
  run --restart on-failure:1 -v ./data:/data hostile/plain:v1 -- /bin/sh -c \
    '[ ! -e data/a ] || { rm -r data; mkdir data; exit 1; }; echo >/data/new' >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
  [ -e data/new ] || fail "what the second attempt wrote is lost"
  fresh
  mv data real
  ln -s real data
  run --restart on-failure:1 -v ./data:/data hostile/plain:v1 -- /bin/sh -c 'echo >>/data/a; [ $(wc -l </data/a) = 3 ]' \
    >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
  rm -r real

  note "$runtime: the next variation"
  fresh
  tried "a matrix" run --parallel 1 --name "m-$runtime" --matrix n=1,2 recipe.yaml -- \
    /bin/sh -c "cat /data/corpus/secret >/output/secret; cd /workspace; mv corpus old && ln -s $host corpus; true"
  grep -q 'cannot be mounted at .* again' "$work/err" || fail "a matrix: $(cat "$work/err")"
  if grep -rqF "$secret" matrix; then fail "a matrix: the machine's file was read"; fi

  note "$runtime: a run that is reproduced"
  for mode in '' :ro; do
    fresh
    run --outputs out -v "./data:/data$mode" hostile/plain:v1 -- /bin/sh -c \
      "cat /data/secret; echo 1 >/data/escaped; echo 1 >out; mv data old && ln -s $host data; true" >"$work/out" 2>"$work/err" </dev/null
    refused "reproduced, data$mode" "$MLENV" reproduce --with-present-code last
  done
  failing_with mount-changed "$MLENV" --json reproduce --with-present-code last
  fresh
  mv data real
  ln -s real data
  run --outputs out -v ./data:/data hostile/plain:v1 -- /bin/sh -c 'cat /data/a >out' >"$work/out" 2>"$work/err" </dev/null
  equal "where it lies" "$work/p/real" "$("$MLENV" --json runs show last | jq -r '.start.mounts[0].source')"
  "$MLENV" reproduce --with-present-code last >"$work/out" 2>"$work/err" </dev/null || fail "a link of the person's: $(cat "$work/err")"

  note "$runtime: a data set between its check and its mount"
  fresh
  mkfifo go
  "$MLENV" run -d --no-check --name "swap-$runtime" hostile/plain:v1 -- /bin/sh -c "read x <go; mv corpus old; ln -s $host corpus" >/dev/null
  run --after "swap-$runtime" recipe.yaml -- /bin/sh -c 'cat /data/corpus/secret' >"$work/out" 2>"$work/err" </dev/null &
  pid=$!
  started+=("$pid")
  queued() { [ "$("$MLENV" --json runs show last | jq -r .state)" = queued ]; }
  wait_until 60 queued
  echo >go
  if wait "$pid"; then fail "a data set: something was mounted"; fi
  nobody_out "a data set"
  grep -q 'cannot be mounted at .* again' "$work/err" || fail "a data set: $(cat "$work/err")"
done

note "the project of a run that is reproduced"
fresh
mkdir real
(cd real && "$MLENV" run --no-check --outputs out hostile/plain:v1 -- /bin/sh -c 'cat secret; echo 1 >out' >"$work/out" 2>"$work/err" </dev/null)
id=$("$MLENV" --json runs show last | jq -r .start.id)
"$MLENV" run --no-check hostile/plain:v1 -- /bin/sh -c "mv real old; ln -s $host real" </dev/null
refused "a project" "$MLENV" reproduce --with-present-code "$id"
rm real

note "the next variation's job"
fresh
tried "a matrix of jobs" "$MLENV" run --no-check --nodes 1 --parallel 1 --name jobs --matrix n=1,2 -v "$work/p/shared:/shared" \
  --checkpoints "$work/p/shared/checkpoints" hostile/plain:v1 -- /bin/sh -c \
  "cat /checkpoints/secret >/output/secret; touch /checkpoints/escaped; cd /shared; mv checkpoints old && ln -s $host checkpoints; true"
if grep -rqF "$secret" matrix; then fail "a matrix of jobs: the machine's file was read"; fi
grep -rq 'cannot be mounted at .* again' "$work/err" matrix || fail "a matrix of jobs: $(cat "$work/err")"

note "another attempt of a job"
fresh
refused "a job" "$MLENV" run --no-check --nodes 1 --restarts 1 -v "$work/p/shared:/shared" \
  --checkpoints "$work/p/shared/checkpoints" hostile/plain:v1 -- /bin/sh -c "cd /shared; $(swap checkpoints /checkpoints)"
both_done
