#!/usr/bin/env bash
# What mlenv did not make it neither removes nor changes: in a folder that MLENV_STORE names, in the store itself,
# in $TMPDIR, in the cache, and in a folder of results. Whatever the umask is, nobody else may write to a store.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need jq python3 busybox
cp /usr/bin/busybox "$work/busybox" 2>/dev/null || skip "busybox-static is not installed"
python3 "$root/tests/support/layers_archive.py" "$work/small.tar" h/small:v1 '{}'

# state FOLDER: of each thing in it type, mode, owner, size, times, path, where it leads.
state() { find "$1" -mindepth 1 -printf '%y %#m %U %s %T@ %C@ %P %l\n' | LC_ALL=C sort; }
# unchanged FOLDER STATUS CODE COMMAND…: it ends so, and nothing in the folder is another.
unchanged() {
  local folder=$1 status=$2 code=$3
  shift 3
  state "$folder" >"$work/before"
  ends_with "$status" "$@"
  state "$folder" | diff "$work/before" - || fail "$* changed $folder"
  [ -z "$code" ] || grep -qF "\"code\":\"$code\"" "$work/err" || fail "not $code: $(cat "$work/err")"
}

note "a folder of somebody's is no store"
mkdir -p "$work/data/tmp/thesis" "$work/outside/work-0123456789ab"
echo 1 >"$work/data/tmp/thesis/chapter"
mkdir -p "$work/linked" && ln -s "$work/outside" "$work/linked/tmp"
mkdir -p "$work/named/tmp/work-0123456789ab" && echo 1 >"$work/named/version"
mkdir -p "$work/likely"/{blobs,names,keys,runs,data,tmp} && echo 1 >"$work/likely/names/people"
for folder in data linked named likely; do
  unchanged "$work/$folder" 1 not-a-store env MLENV_STORE="$work/$folder" "$MLENV" --json load "$work/small.tar"
  for command in images gc "store sync" runs; do
    state "$work/$folder" >"$work/before"
    # shellcheck disable=SC2086 # several words
    MLENV_STORE=$work/$folder "$MLENV" $command >/dev/null 2>&1 || true
    state "$work/$folder" | diff "$work/before" - || fail "$command changed $folder"
  done
done
[ -d "$work/outside/work-0123456789ab" ] || fail "a link was followed"
mkdir "$work/home2"
unchanged "$work/home2" 1 not-a-store env HOME="$work/home2" MLENV_STORE="$work/home2" "$MLENV" --json load "$work/small.tar"
failing_with not-a-store env MLENV_STORE=/ "$MLENV" --json load "$work/small.tar"

note "an empty one becomes one, also as a link, whatever the umask is; an old one goes on"
mkdir -m 777 "$work/disk"
ln -s "$work/disk" "$work/link"
(umask 0 && MLENV_STORE=$work/link "$MLENV" load "$work/small.tar" >/dev/null 2>&1)
for runtime in crun runc; do
  (umask 0 && MLENV_STORE=$work/link "$MLENV" run --runtime "$runtime" --no-project --no-check h/small:v1 -- true) >"$work/out" 2>&1 ||
    fail "$(cat "$work/out")"
done
equal "what others may write" "" "$(find "$work/disk" -path "$work/disk/trees/*" -prune -o ! -type l -perm /022 -print)"
rm "$work/disk/mlenv-store"
equal "images" 1 "$(MLENV_STORE=$work/link "$MLENV" --json images | jq '.images | length')"
MLENV_STORE=$work/link "$MLENV" tag h/small:v1 h/small:v2 >/dev/null
[ -f "$work/disk/mlenv-store" ] || fail "an old store got no mark"

note "what lies among the store's own"
"$MLENV" load "$work/small.tar" >/dev/null 2>&1
hex=$(printf 'a%.0s' {1..64})
planted=(tmp/{notes,thesis/.lock,work-thesis/.lock,work-mythesis2026/in,garbage-bin/fs/in} {blobs,keys,names,trees,partial,history}/notes
  "vm/disks/$hex-of-mine" data/film.part jobs/old/record kept/mine/held runs/{notes/run.json,.new-notes/run.json} unsynced/papers/one)
for path in "${planted[@]}"; do
  mkdir -p "$MLENV_STORE/$(dirname "$path")"
  echo "of somebody" >"$MLENV_STORE/$path"
done
mkdir "$MLENV_STORE/unsynced/empty"
ln -s "$work/outside" "$MLENV_STORE/tmp/work-linklinklink"
ln -s "$work/outside/precious" "$MLENV_STORE/partial/$hex"
links=(tmp/work-linklinklink "partial/$hex" unsynced/empty)
find "$MLENV_STORE" -exec touch -h -d '3 months ago' {} +
theirs() { (cd "$MLENV_STORE" && for path in "${planted[@]}" "${links[@]}"; do find "$path" -maxdepth 0 -printf '%y %#m %s %P %p %l\n'; done) 2>&1; }
theirs >"$work/theirs"
for command in "gc --forget-history" images "run --runtime crun --no-project --no-check h/small:v1 -- true"\
  "run --runtime runc --no-project --no-check h/small:v1 -- true" "runs prune --older-than 1s" gc; do
  # shellcheck disable=SC2086 # several words
  "$MLENV" $command >"$work/out" 2>&1 || fail "$command: $(cat "$work/out")"
done
ends_with 3 "$MLENV" store verify --repair
grep -q 'not removed: mlenv did not make them' "$work/err" || fail "$(cat "$work/err")"
theirs | diff "$work/theirs" - || fail "something of somebody's is gone"
[ ! -e "$work/outside/precious" ] || fail "a link was written through"

note "a tree that nobody may remove is told by gc"
if as_root true 2>/dev/null && command -v chattr >/dev/null; then
  mkdir -p "$MLENV_STORE/tmp/work-000000000000/deep"
  touch "$MLENV_STORE/tmp/work-000000000000/"{.lock,deep/fixed,gone}
  if as_root chattr +i "$MLENV_STORE/tmp/work-000000000000/deep/fixed" 2>/dev/null; then
    "$MLENV" gc >"$work/out" 2>&1
    as_root chattr -i "$MLENV_STORE/tmp/work-000000000000/deep/fixed"
    grep -q 'could not be taken away.*deep/fixed' "$work/out" || fail "gc says: $(cat "$work/out")"
    [ ! -e "$MLENV_STORE/tmp/work-000000000000/gone" ] || fail "what could be removed stays"
    "$MLENV" gc >/dev/null 2>&1
    [ ! -e "$MLENV_STORE/tmp/work-000000000000" ] || fail "it stays for ever"
  fi
fi

note "scratch folders of others"
mkdir -p "$work/tmp"/mlenv-scratch-{precious,mythesis2026}/in
printf 'name: x\nbase: oci:none\n' >"$work/x.yaml"
TMPDIR=$work/tmp ends_with 0 "$MLENV" facts
TMPDIR=$work/tmp "$MLENV" run --nodes 1 --no-project --no-check h/small:v1 -- true >/dev/null 2>&1 || true
equal "folders" 2 "$(find "$work/tmp" -name in | wc -l)"

note "results of a matrix: what is there already stays"
mkdir -p "$work/results/n=1" "$work/held"
echo '{"loss": 1}' >"$work/results/n=1/metrics.json"
echo "mine" >"$work/held/.lock"
for folder in results held; do
  for runtime in crun runc; do
    unchanged "$work/$folder" 125 matrix-exists "$MLENV" --json run --runtime "$runtime" --no-project --no-check --results "$work/$folder" --matrix n=1..2 h/small:v1 -- true
  done
done
