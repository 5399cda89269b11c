#!/usr/bin/env bash
# `mlenv run --keep` and `--from`: what a run writes to the image outlives it, also when everything is
# killed; one run writes at a time, any number start from it; it goes with the record. An ordinary user's; with
# --long root's as well.
# shellcheck disable=SC2016  # for the shells inside
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc crun jq
need_root

small_tree
path=$work/small.yaml
sed 's/^name: .*/name: other/; s/six/idna/' "$path" >"$work/other.yaml"
build_digest "$work/other.yaml" >/dev/null
user_store
mkdir "$work/project"
chmod 777 "$work/project"

as() { # as WHO ARGUMENT…: mlenv in the project
  local who=$1
  shift
  if [ "$who" = root ]; then
    (cd "$work/project" && as_root env MLENV_STORE="$MLENV_STORE" "$MLENV" "$@")
  else
    (cd "$work/project" && as_user MLENV_STORE="$user_home/store" mlenv "$@")
  fi
}
store_of() { if [ "$1" = root ]; then echo "$MLENV_STORE"; else echo "$user_home/store"; fi; }
kept() { as_root find "$(store_of "$1")/kept" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
record() { as "$1" --json runs show "$2" | jq -r "$3"; }
nobody_holds() { # nobody_holds WHO: a layer
  local inode
  for inode in $(as_root find "$(store_of "$1")/kept" -maxdepth 2 -name held -type f -printf '%i\n'); do
    ! grep -q ":$inode " /proc/locks || return 1
  done
}
has_ended() { [ "$(record "$1" "$2" .state)" != running ]; }
# Nobody holds it any more, a killed run's first process included.
is_free() { as "$1" run --from "$2" small -- true; }

everybody=(user)
[ "$MLENV_TEST_LONG" = 0 ] || everybody=(root user)
for who in "${everybody[@]}"; do
  note "$who: what is written stays, and the image as it is"
  as "$who" run --keep --name first small -- sh -c \
    'echo one >/opt/file; mkdir /opt/d; rm /etc/passwd; rm -r /usr/share/doc; mkdir /usr/share/doc; chmod 700 /opt/d' 2>"$work/err"
  grep -qF 'mlenv run --from first' "$work/err" || fail "$who: not said how to go on: $(cat "$work/err")"
  equal "$who: the image" clean "$(as "$who" run small -- sh -c 'test -e /etc/passwd && ! test -e /opt/file && echo clean')"
  for runtime in runc crun; do
    equal "$who, $runtime: started from it" "one 700" \
      "$(as "$who" run --runtime "$runtime" --from first small -- sh -c 'echo $(cat /opt/file) $(stat -c %a /opt/d); echo two >/opt/file; grep -q ^daemon /etc/passwd && exit 5; ls /usr/share/doc')"
  done
  equal "$who: with --keep" one "$(as "$who" run --keep --from first --name second small -- sh -c 'cat /opt/file; echo two >/opt/file')"
  equal "$who: one layer" 1 "$(kept "$who")"
  for name in first second; do
    equal "$who: by either run" two "$(as "$who" run --from "$name" small -- cat /opt/file)"
  done
  equal "$who: the record" "true null $(record "$who" first .start.id)" \
    "$(record "$who" first '"\(.start.layer.kept) \(.start.layer.from)"') $(record "$who" second .start.layer.from)"
  as "$who" runs show second >"$work/out"
  grep -q '^kept  ' "$work/out" || fail "$who: runs show does not say it: $(cat "$work/out")"
  as "$who" --json runs show second >"$work/record.json"
  python3 "$root/tests/schema/check.py" <"$work/record.json" >"$work/met" ||
    fail "$who: the record is not of its schema"
  equal "$who: read-only" two "$(as "$who" run --read-only --from first small -- cat /opt/file)"
  as "$who" run --matrix n=1..2 --from first --results "$work/project/m-$who" small -- sh -c 'grep two /opt/file' >/dev/null 2>&1
  as "$who" diff first second >"$work/out" || true
  grep -q 'files that an earlier run kept' "$work/out" || fail "$who: diff does not tell: $(cat "$work/out")"
  as "$who" run --from first --name by-first small -- true
  as "$who" run --from second --name by-second small -- true
  as "$who" diff by-first by-second >"$work/out" || true
  ! grep -q 'files that an earlier run kept' "$work/out" || fail "$who: one layer by two names: $(cat "$work/out")"

  note "$who: a matrix goes on over the same files"
  failing_with matrix-differs as "$who" --json run --matrix n=1..2 --resume --results "$work/project/m-$who" small -- sh -c 'grep two /opt/file'
  grep -qF 'kept files' "$work/err" || fail "$who: not said what differs: $(cat "$work/err")"
  as "$who" run --matrix n=1..2 --from second --resume --results "$work/project/m-$who" small -- sh -c 'grep two /opt/file' >/dev/null 2>&1

  note "$who: in the background; one writes at a time"
  as "$who" run -d --keep --from first --name writer small -- sh -c 'echo three >/opt/file; exec sleep 1000' >/dev/null
  for words in "--from first" "--keep --from second"; do
    # shellcheck disable=SC2086  # several words
    failing_with layer-busy as "$who" --json run $words small -- true
    grep -qF "$(record "$who" writer .start.id)" "$work/err" || fail "$who: not said by whom: $(cat "$work/err")"
  done
  as "$who" stop writer >/dev/null
  as "$who" run -d --from first --name reader small -- sleep 1000 >/dev/null
  equal "$who: two start from it" three "$(as "$who" run --from first small -- cat /opt/file)"
  failing_with layer-busy as "$who" --json run --keep --from first small -- true
  as "$who" stop reader >/dev/null

  note "$who: everything is killed"
  as "$who" run -d --keep --from first --name killed small -- sh -c 'echo four >/opt/file; sync -f /opt/file; echo written; exec sleep 1000' >/dev/null
  written() { as "$who" logs killed | grep -c written; }
  wait_until 20 written
  # The supervisor and the process around the container, by the record's lock and as its children.
  held=$(as_root stat -c %i "$(store_of "$who")/runs/$(record "$who" killed .start.id)/held")
  for pid in $(as_root sh -c "grep -E ':$held +' /proc/locks" | awk '{print $5}' | sort -u); do
    children=$(as_root cat "/proc/$pid/task/$pid/children" 2>/dev/null || true)
    # shellcheck disable=SC2086  # several
    as_root kill -9 "$pid" $children 2>/dev/null || true
  done
  wait_until 20 has_ended "$who" killed
  equal "$who: state" lost "$(record "$who" killed .state)"
  wait_until 20 is_free "$who" killed
  equal "$who: it goes on from there" four "$(as "$who" run --keep --from killed small -- cat /opt/file)"

  note "$who: what is asked wrongly"
  failing_with layer-differs as "$who" --json run --from first other -- true
  failing_with no-kept-layer as "$who" --json run --from reader small -- true
  grep -qF -- "--from $(record "$who" first .start.id)" "$work/err" || fail "$who: not said from which: $(cat "$work/err")"
  failing_with no-run as "$who" --json run --from nothing small -- true
  failing_with usage as "$who" --json run --read-only --keep small -- true
  failing_with usage as "$who" --json run --rm --keep small -- true
  failing_with usage as "$who" --json run --matrix n=1..2 --keep small -- true
  failing_with usage as "$who" --json run --keep --runtime docker small -- true
  for words in --keep "--from first"; do
    # shellcheck disable=SC2086  # several words
    failing_with usage as "$who" --json run $words --runtime vm small -- true
    grep -qF -- '--runtime vm' "$work/err" || fail "$who: not said what to leave out: $(cat "$work/err")"
  done
  as "$who" run -d --name taken small -- sleep 1000 >/dev/null
  for words in "" -d; do
    # shellcheck disable=SC2086  # none or one
    failing_with name-taken as "$who" --json run $words --keep --name taken small -- true
  done
  as "$who" stop taken >/dev/null
  equal "$who: a run that was none keeps nothing" 1 "$(kept "$who")"
  failing_with cannot-reproduce as "$who" --json reproduce second

  note "$who: it goes with the records of those who wrote to it"
  as "$who" runs prune --keep 0 2>"$work/err"
  grep -q -- '--kept' "$work/err" || fail "$who: not said that some stay: $(cat "$work/err")"
  equal "$who: it is there" 1 "$(kept "$who")"
  as "$who" runs rm first
  as_root mkdir -p "$(store_of "$who")/kept/20260101-000000-000000/held"
  as "$who" run --keep --name other small -- true 2>/dev/null
  # Its first process may hold it for a moment after the run.
  wait_until 20 nobody_holds "$who"
  as "$who" runs rm other 2>"$work/err"
  grep -qF '20260101-000000-000000` stays: ' "$work/err" || fail "$who: not said that one stays: $(cat "$work/err")"
  as_root rm -r "$(store_of "$who")/kept/20260101-000000-000000"
  equal "$who: the others went" 1 "$(kept "$who")"
  equal "$who: others name it" four "$(as "$who" run --from second small -- cat /opt/file)"
  as "$who" runs prune --keep 0 --kept
  equal "$who: it is gone" 0 "$(kept "$who")"
  equal "$who: scratch folders" "" "$(as_root find "$(store_of "$who")/tmp" -mindepth 1 -maxdepth 1 2>/dev/null)"
done

note "packages, with this machine's settings as they are then"
as_root mkdir -p "$work/home-root/.config/pip"
pip_run() { # pip_run INDEX ARGUMENT…
  printf '[global]\nindex-url = %s\n' "$1" | as_root tee "$work/home-root/.config/pip/pip.conf" >/dev/null
  shift
  (cd "$work/project" && as_root env HOME="$work/home-root" MLENV_STORE="$MLENV_STORE" "$MLENV" run "$@")
}
pip_run http://one.example --keep --name settings small -- true
equal "settings of today" 'index-url = http://two.example' \
  "$(pip_run http://two.example --keep --from settings small -- sh -c 'grep index /root/.config/pip/pip.conf')"
as_root rm "$work/home-root/.config/pip/pip.conf"
as_root mkdir -p "$work/no-settings"
for words in "" --keep; do
  # shellcheck disable=SC2086  # none or one
  equal "settings that are no more, $words" gone "$(cd "$work/project" && as_root env HOME="$work/no-settings" MLENV_STORE="$MLENV_STORE" \
    "$MLENV" run $words --from settings small -- sh -c 'test -e /root/.config/pip/pip.conf || echo gone')"
done
failing_with layer-differs as_root env MLENV_STORE="$MLENV_STORE" unshare --user --map-root-user \
  "$MLENV" --json run --from settings --no-project small -- true
as root runs prune --keep 0 --kept

note "nothing is left"
for who in root user; do
  no_mount() { ! as_root sh -c 'cat /proc/[0-9]*/mountinfo 2>/dev/null' | grep -F " $(store_of "$who")/" >"$work/mounts"; }
  wait_until 20 no_mount || fail "a mount is left: $(cat "$work/mounts")"
done
verify_store
