#!/usr/bin/env bash
# `mlenv gc`: what it frees and what it leaves, to a new user; beside runs and builds; killed at four moments, at
# eight with MLENV_TEST_LONG=1.
# on disk
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need_root
need runc jq
base_tree
cd "$work"

# room: bytes on the disk of all that gc looks at, but for the keys.
room() { du -s --block-size=1 -c "$MLENV_STORE"/{blobs,spliced,trees}/* | tail -n 1 | cut -f 1; }
gc() { "$MLENV" --json -q gc "$@" >"$work/gc.json" || fail "gc $*"; }
one_gc() { timeout 60 "$MLENV" --json -q gc >"$work/gc.json" || fail "gc waits for itself, or failed: $?"; }
of() { jq -r "$1" "$work/gc.json"; }
sound() {
  "$MLENV" store verify >"$work/verify" 2>&1 || fail "$(cat "$work/verify")"
  [ -z "$(ls "$MLENV_STORE/tmp")" ] || fail "left in tmp: $(ls "$MLENV_STORE/tmp")"
}
python_says() { equal "$1" "$3" "$("$MLENV" run --no-project "$1" python3 -c "$2")"; }

note "a store that is not there yet is none afterwards"
equal "answer" "there is no store yet" "$(MLENV_STORE=$work/none "$MLENV" gc)"
[ ! -e "$work/none" ] || fail "it made a store"

note "an image without a name goes, with what only it had"
small_recipe small.yaml six
first=$(build_digest small.yaml)
python_says small 'import six; print(six.__name__)' six
"$MLENV" runs prune --keep 0 >/dev/null
small_recipe small.yaml idna
sed -i 's/^name: small/name: other/' small.yaml
build_digest small.yaml >/dev/null
"$MLENV" gc >"$work/out" 2>"$work/err"
grep -q '^freed ' "$work/out" || fail "$(cat "$work/out")"
"$MLENV" inspect small >/dev/null
gc
equal "a second time" "0 0 0" "$(of '"\(.bytes) \(.images.count) \(.blobs.count)"')"
"$MLENV" rm small >/dev/null
gc --dry-run
would=$(of .bytes)
[ "$would" -gt 0 ] || fail "nothing would go: $(cat "$work/gc.json")"
"$MLENV" inspect "$first" >/dev/null || fail "a dry run took it away"
before=$(room)
gc
equal "what it said that it would" "$would" "$(of .bytes)"
equal "images" 1 "$(of .images.count)"
equal "given back" "$(of '.bytes - .keys.bytes')" $((before - $(room)))
failing_with not-found "$MLENV" --json inspect "$first"
python_says other 'import idna; print(idna.__name__)' idna
sound

note "built again, it is the same"
small_recipe small.yaml six
equal "digest" "$first" "$(build_digest small.yaml)"
mkdir "$work/result"
"$MLENV" run --no-project -v "$work/result:/result" --outputs /result small -- \
  python3 -c 'import six; open("/result/file", "w").write(six.__name__)'

note "a recorded run holds its image; its record gone, it goes"
"$MLENV" rm small >/dev/null
"$MLENV" gc >"$work/out" 2>"$work/err"
grep -q 'stays for recorded runs and jobs alone' "$work/err" || fail "$(cat "$work/err")"
"$MLENV" reproduce last >"$work/out" 2>&1 || fail "$(cat "$work/out")"
"$MLENV" runs prune --keep 0 >/dev/null
gc
equal "images" 1 "$(of .images.count)"
equal "nothing for runs" 0 "$(of .for_runs.bytes)"
sound

note "what a name meant before stays for rollback, until it is to be forgotten"
build_digest small.yaml >/dev/null
"$MLENV" tag other small
gc
[ "$(of .for_history.bytes)" -gt 0 ] || fail "$(cat "$work/gc.json")"
"$MLENV" rollback small >/dev/null
python_says small 'import six; print(six.__name__)' six
"$MLENV" rollback small >/dev/null
"$MLENV" runs prune --keep 0 >/dev/null
gc --forget-history
equal "images" 1 "$(of .images.count)"
failing_with absent "$MLENV" --json rollback small
sound

note "beside a run: its files stay, though no name leads there; other garbage goes"
build_digest small.yaml >/dev/null
mkdir "$work/lent"
# shellcheck disable=SC2016 # for the container
"$MLENV" run --no-project -v "$work/lent:/shared" small -- sh -c '
  touch /shared/up; while [ ! -e /shared/go ]; do sleep 0.1; done; exec python3 -c "import six; print(six.__name__)"' \
  >"$work/ran" 2>&1 &
started+=($!)
run=$!
wait_until 60 test -e "$work/lent/up"
"$MLENV" rm small >/dev/null
printf 'name: unwanted\nbase: debian:bookworm\npython: "3.11"\npackages: [idna, six]\n' >unwanted.yaml
build_digest unwanted.yaml >/dev/null
"$MLENV" rm unwanted >/dev/null
# Also where its record was lost.
mv "$MLENV_STORE/runs" "$work/runs"
gc
mv "$work/runs" "$MLENV_STORE/runs"
equal "held since" null "$(of .held_since)"
equal "images" 1 "$(of .images.count)"
touch "$work/lent/go"
wait "$run" || fail "$(cat "$work/ran")"
equal "the run" six "$(cat "$work/ran")"
"$MLENV" runs prune --keep 0 >/dev/null
gc
equal "images" 1 "$(of .images.count)"
sound

note "beside builds, again and again: each has what it found and made"
until [ -e "$work/enough" ]; do "$MLENV" -q gc >>"$work/log" 2>&1 || touch "$work/gc.failed"; done &
started+=($!)
loop=$!
for _ in 1 2; do
  equal "digest" "$first" "$(build_digest small.yaml)"
  python_says small 'import six; print(six.__name__)' six
  "$MLENV" rm small >/dev/null
  "$MLENV" runs prune --keep 0 >/dev/null
done
touch "$work/enough"
wait "$loop"
[ ! -e "$work/gc.failed" ] || fail "$(cat "$work/log")"
sound

note "killed at any moment: the store is sound, the next one frees the rest"
gc
base=$(room)
moments=(1 3 5 8)
if [ "$MLENV_TEST_LONG" = 1 ]; then moments=(1 2 3 4 5 6 7 8); fi
for i in "${moments[@]}"; do
  build_digest small.yaml >/dev/null
  "$MLENV" rm small >/dev/null
  "$MLENV" -q gc >/dev/null 2>&1 &
  started+=($!)
  sleep "0.0$((i * 12 % 100 / 10))$((i % 10))"
  kill -9 "${started[-1]}" 2>/dev/null || true
  wait "${started[-1]}" 2>/dev/null || true
  "$MLENV" images >/dev/null
  sound
done
gc
sound
equal "room" "$base" "$(room)"

note "by age, and by size"
build_digest small.yaml >/dev/null
"$MLENV" rm small >/dev/null
gc --older-than 1h
equal "of the last hour nothing goes" 0 "$(of .bytes)"
[ "$(of .spared.bytes)" -gt 0 ] || fail "$(cat "$work/gc.json")"
gc --max-size 100t
equal "there is room" 0 "$(of .bytes)"
target=$(($(room) - 4096))
gc --max-size "$target"
[ "$(of .bytes)" -gt 0 ] || fail "nothing went: $(cat "$work/gc.json")"
[ "$(of .spared.bytes)" -gt 0 ] || fail "all went: $(cat "$work/gc.json")"
[ "$(room)" -le "$target" ] || fail "$(room) is more than $target"
gc
sound
python_says other 'import idna; print(idna.__name__)' idna

note "a disk without room for one more folder"
mkdir "$work/disk"
as_root mount -t tmpfs -o size=2g,mode=777 tmpfs "$work/disk"
base_store "$work/disk/store"
MLENV_STORE=$work/disk/store build_digest small.yaml >/dev/null
MLENV_STORE=$work/disk/store "$MLENV" rm small >/dev/null
MLENV_STORE=$work/disk/store "$MLENV" store sync # what does so in the background is done then, or finds nothing
as_root mount -o "remount,nr_inodes=$(df --output=iused "$work/disk" | tail -n 1)" "$work/disk"
if mkdir "$work/disk/more" 2>/dev/null; then fail "there is room"; fi
if MLENV_STORE=$work/disk/store "$MLENV" --json -q tag base one 2>"$work/err"; then fail "it had room"; fi
equal "code" no-space "$(jq -r .code "$work/err")"
grep -q 'mlenv gc' "$work/err" || fail "nobody says what to do: $(cat "$work/err")"
MLENV_STORE=$work/disk/store gc
[ "$(of .bytes)" -gt 0 ] || fail "$(cat "$work/gc.json")"
MLENV_STORE=$work/disk/store "$MLENV" tag base one
MLENV_STORE=$work/disk/store sound
as_root mount -o remount,nr_inodes=1m "$work/disk"
equal "digest" "$first" "$(MLENV_STORE=$work/disk/store build_digest small.yaml)"
# Nothing but keys, and then nothing at all, can go.
MLENV_STORE=$work/disk/store "$MLENV" store sync
MLENV_STORE=$work/disk/store gc
for key in "$work"/disk/store/keys/*; do touch -d '40 days ago' "$key"; done
as_root mount -o "remount,nr_inodes=$(df --output=iused "$work/disk" | tail -n 1)" "$work/disk"
MLENV_STORE=$work/disk/store one_gc
[ "$(of .keys.count)" -gt 0 ] || fail "$(cat "$work/gc.json")"
equal "but keys" "$(of .keys.bytes)" "$(of .bytes)"
as_root mount -o "remount,nr_inodes=$(df --output=iused "$work/disk" | tail -n 1)" "$work/disk"
MLENV_STORE=$work/disk/store one_gc
equal "in all" 0 "$(of .bytes)"
as_root mount -o remount,nr_inodes=1m "$work/disk"
MLENV_STORE=$work/disk/store sound

note "what is no age or size is said"
failing_with usage "$MLENV" --json gc --older-than soon
failing_with usage "$MLENV" --json gc --older-than 7 # seconds, perhaps
failing_with usage "$MLENV" --json gc --max-size much
