#!/usr/bin/env bash
# A variation of a matrix that swaps the results of the others, which lie in the project that all of them write to, by
# links out of it: while they start, before, and in the place of the folder of all results. Nothing of the machine is
# written or removed; by root and by an ordinary user, crun and runc.
# shellcheck disable=SC2016,SC2317  # for the shells inside; `m` is called by `matrix`
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/hostile.sh
. "$root/tests/support/hostile.sh"
need gcc jq

gcc -static -O1 -o "$work/swap" "$root/tests/support/swap.c"
hostile_image plain "$work/swap"
user_store
chmod 755 "$work"
everybody() {
  for runtime in crun runc; do
    project=$work/root-$runtime
    mkdir "$project"
    m() { (cd "$project" && "$MLENV" "$@"); }
    "$@" "root, $runtime"
    project=$work/user-$runtime
    mkdir "$project"
    as_root chown "$user_id" "$project"
    m() { as_user MLENV_STORE="$user_home/store" sh -c 'cd "$0" && exec mlenv "$@"' "$project" "$@"; }
    "$@" "user, $runtime"
  done
}
matrix() { m run --runtime "$runtime" --no-check "$@"; }
# The mark that mlenv's own removal of an old result would take away, and a mode that it might change.
echo '{"loss": 1}' >"$host/metrics.json"
unchanged() { # unchanged WHAT
  equal "$1: the machine's files" $'metrics.json\nsecret' "$(ls "$host")"
  equal "$1: the machine's file" "$secret" "$(cat "$host/secret")"
  if grep -qF "$secret" "$work/out" "$work/err"; then fail "$1: the machine's file was read"; fi
}

races() { # races WHO
  note "$1: while they start"
  # The first one swaps the second's folder for a link as fast as it can; the others start meanwhile.
  matrix --parallel 2 --name race --matrix n=1..9 hostile/plain:v1 -- /bin/sh -c '
    if [ $n = 1 ]; then
      cd matrix/race
      for i in 2 3 4 5 6 7 8 9; do ln -s '"$host"' link$i; mkdir -p n=$i; done
      for i in 2 3 4 5 6 7 8 9; do /opt/swap n=$i link$i /workspace/end & done; wait
    else
      cat /output/secret; : >/output/escaped$n; [ $n != 9 ] || : >/workspace/end
    fi 2>/dev/null; true' >"$work/out" 2>"$work/err" </dev/null &
  local pid=$!
  # The last one may be refused.
  for _ in $(seq 200); do
    kill -0 "$pid" 2>/dev/null || break
    if [ -e "$project/matrix/race/matrix.json" ] &&
      [ "$(jq '[.variations[] | select(.state == "waiting" or .state == "running")] | length' "$project/matrix/race/matrix.json")" -le 1 ]; then
      break
    fi
    read -rt 0.1 <> <(:) || true
  done
  as_root touch "$project/end"
  wait "$pid" || true
  unchanged "$1: a race"
  grep -q 'is not the folder that mlenv made' "$work/err" || [ -e "$project/matrix/race/n=2/escaped2" ] ||
    find "$project/matrix/race" -name 'escaped*' | grep -q . || fail "$1: nothing ran: $(cat "$work/err")"
}
in_place() { # in_place WHO
  note "$1: links in the place of results"
  matrix --no-check --name all --matrix n=1..3 hostile/plain:v1 -- /bin/sh -c '[ $n = 1 ] || exit 0; cd matrix/all
    ln -s '"$host"' n=2; ln -s '"$host"' n=3; exit 3' >"$work/out" 2>"$work/err" </dev/null || true
  unchanged "$1: a variation's"
  equal "$1: refused" "2" "$(grep -c 'is not the folder that mlenv made' "$work/err")"
  # The folder of all of them, above it, and what mlenv writes there.
  matrix --name moved --matrix n=1..2 hostile/plain:v1 -- /bin/sh -c '[ $n = 1 ] || exit 0
    mv matrix/moved matrix/aside; ln -s '"$host"' matrix/moved' >"$work/out" 2>"$work/err" </dev/null || true
  unchanged "$1: the folder of a matrix"
  [ -e "$project/matrix/aside/matrix.json" ] || fail "$1: the record is gone: $(cat "$work/err")"
  m run --runtime "$runtime" --no-check hostile/plain:v1 -- /bin/sh -c 'rm -rf matrix; ln -s '"$host"' matrix' >/dev/null
  failing_with matrix-exists matrix --json --matrix n=1,2 hostile/plain:v1 -- true
  unchanged "$1: the folder of all"
  failing_with matrix-exists matrix --json --name x --matrix n=1,2 hostile/plain:v1 -- true
  unchanged "$1: the folder of all, of a name"
  m run --runtime "$runtime" --no-check hostile/plain:v1 -- /bin/sh -c 'rm matrix; mkdir matrix; ln -s '"$host"' matrix/x' >/dev/null
  failing_with matrix-exists matrix --json --name x --matrix n=1,2 hostile/plain:v1 -- true
  unchanged "$1: the folder of one"
}
everybody races
for runtime in crun runc; do as_root rm -rf "$work/root-$runtime" "$work/user-$runtime"; done
everybody in_place

note "a folder that the person named, by a link of theirs"
mkdir "$work/disk" "$work/mine"
ln -s "$work/disk" "$work/mine/results"
(cd "$work/mine" && "$MLENV" run --no-check --results results/one --matrix n=1,2 hostile/plain:v1 -- sh -c ': >/output/mine$n') >"$work/out" 2>&1 ||
  fail "$(cat "$work/out")"
for n in 1 2; do [ -e "$work/disk/one/n=$n/mine$n" ] || fail "no results of $n"; done
