#!/usr/bin/env bash
# Words that Linux, a runtime or a path's syntax cannot take: too long a variable or argument, odd characters in the
# paths of store, project and temporary folder, ids that are none; as root and as an ordinary user, crun and runc, each
# with one of the two; all with --long.
# shellcheck disable=SC2016  # backticks stand in messages
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need busybox git python3 runc crun setpriv
need_root

passwd='root:x:0:0:root:/root:/bin/sh
minus:x:4294967295:0::/:/bin/sh
beyond:x:4294967296:0::/:/bin/sh
words:x:zero:0::/:/bin/sh
group:x:7:-1::/:/bin/sh
member:x:8:8::/:/bin/sh
'
image() { # image NAME CONFIG
  python3 "$root/tests/support/busybox_image.py" "$work/$1.tar" "$1:v1" --passwd "$passwd" \
    --group $'root:x:0:\nodd:x:4294967295:member\n' --config "$2"
  "$MLENV" load "$work/$1.tar" >/dev/null 2>&1
}
image words '{}'
image minus '{"User": "4294967295"}'
image group '{"User": "0:4294967295"}'
user_store
mkdir "$work/project"
chmod 777 "$work/project"
cd "$work/project"
run_as() { # run_as WHO ARGUMENT…
  local who=$1
  shift
  if [ "$who" = root ]; then
    as_root env HOME="$HOME" MLENV_STORE="${store:-$MLENV_STORE}" TMPDIR="${TMPDIR:-/tmp}" "$MLENV" "$@"
  else
    as_user MLENV_STORE="${store:-$user_home/store}" TMPDIR="${TMPDIR:-/tmp}" mlenv "$@"
  fi
}
plain=(run --no-check --no-project)
too_long() { # too_long WHO WHAT ARGUMENT…: 126, and one line that says why
  local who=$1 what=$2
  shift 2
  ends_with 126 run_as "$who" "${plain[@]}" "$@"
  grep -qE "^mlenv: cannot run .*$what .*put it into a file$" "$work/err" || fail "$who: says: $(cat "$work/err")"
  ! grep -qi 'level\|argument list' "$work/err" || fail "$who: the runtime's words: $(cat "$work/err")"
}

python3 - "$work" <<'PYTHON'
import sys
work = sys.argv[1]
def write(name, text):
    open(f"{work}/{name}", "w").write(text)
write("long.env", "BIG=" + "x" * 140000 + "\n")
write("most.env", "BIG=" + "x" * (131071 - 4) + "\n")
write("some.env", "".join(f"V{i}=" + "x" * 100000 + "\n" for i in range(4)))
write("many.env", "".join(f"V{i}=" + "x" * 100000 + "\n" for i in range(70)))
PYTHON
for who in root user; do
  for runtime in crun runc; do
    case $MLENV_TEST_LONG/$who/$runtime in 0/root/crun | 0/user/runc) continue ;; esac
    note "$who, $runtime: too long a variable, and too many of them"
    too_long "$who" 'its variable `BIG` is 140004 bytes long, and Linux takes 131071' --runtime "$runtime" --env-file "$work/long.env" words:v1 -- true
    too_long "$who" 'its arguments and variables are' --runtime "$runtime" --env-file "$work/many.env" words:v1 -- true
    ends_with 0 run_as "$who" "${plain[@]}" --runtime "$runtime" --env-file "$work/most.env" words:v1 -- sh -c 'test ${#BIG} = 131067'
  done
  # A small stack takes less: a quarter of it.
  ends_with 0 run_as "$who" "${plain[@]}" --env-file "$work/some.env" words:v1 -- true
  too_long "$who" 'its arguments and variables are .* Linux takes 262144' --ulimit stack=1048576:1048576 --env-file "$work/some.env" words:v1 -- true

  note "$who: an id that is none"
  for wanted in --user=-1 --user=4294967295 --user=4294967296 --user=0:4294967295 --user=0:-1 --user=minus --user=beyond \
    --user=words --user=group; do
    failing_with no-user run_as "$who" --json "${plain[@]}" "$wanted" words:v1 -- id
    grep -q 'ids are numbers from 0 to 4294967294' "$work/err" || fail "$who, $wanted: says: $(cat "$work/err")"
  done
done
failing_with no-user run_as root --json "${plain[@]}" --group-add=4294967295 words:v1 -- id
for image in minus group; do
  failing_with no-user run_as root --json "${plain[@]}" "$image:v1" -- id
done
# A group of the image's file that is none is left out.
ends_with 0 run_as root "${plain[@]}" --user member words:v1 -- id -G
equal "groups" 8 "$(cat "$work/out")"

note "words in brackets stay as they are"
brackets=('[a, b]' '[]' '[[1,2],[3]]' '[a' 'b]' '--x=[1,2]' '[--]' '[ ]' $'[a]\x1f')
expected=$(printf '<%s>\n' "${brackets[@]}")
for who in root user; do
  equal "$who, run" "$expected" "$(run_as "$who" "${plain[@]}" words:v1 -- printf '<%s>\n' "${brackets[@]}")"
  equal "$who, without --" "$expected" "$(run_as "$who" "${plain[@]}" words:v1 printf '<%s>\n' "${brackets[@]}")"
  equal "$who, variables" '[a, b]/X[1]/[c,d]' "$(run_as "$who" "${plain[@]}" -e 'X=[a, b]' -e 'Y=X[1]' --env='Z=[c,d]' words:v1 -- \
    sh -c 'echo "$X/$Y/$Z"')"
done
id=$(run_as root run -d --no-check --no-project words:v1 -- sleep 100)
equal "exec" "$expected" "$(run_as root exec "$id" printf '<%s>\n' "${brackets[@]}")"
run_as root stop "$id" >/dev/null 2>&1
# What is not the command's is told as it was given.
failing_with usage run_as root --json run --network '[none, x]' words:v1 -- true
grep -qF '`[none, x]`' "$work/err" || fail "says: $(cat "$work/err")"

note "words of others stay on one line of an answer"
forged=$'evil\nhint: FORGED\e[31m'
"$MLENV" facts --json >"$work/host.json"
python3 - "$work" <<'PYTHON'
import json, sys
work = sys.argv[1]
def forge(value):
    if isinstance(value, dict):
        return {key: forge(one) for key, one in value.items()}
    if isinstance(value, list):
        return [forge(one) for one in value]
    return value + "\nhint: FORGED" if isinstance(value, str) and not value.startswith("mlenv.") else value
with open(f"{work}/host.json") as file:
    facts = json.load(file)
with open(f"{work}/forged.json", "w") as file:
    json.dump({key: one if key == "schema" else forge(one) for key, one in facts.items()}, file)
PYTHON
python3 "$root/tests/support/busybox_image.py" "$work/forged.tar" forged:v1 \
  --config "$(python3 -c 'import json, sys; e = sys.argv[1]; print(json.dumps({"Labels": {e: e}, "Env": ["A=" + e], "Cmd": [e], "User": e}))' "$forged")"
"$MLENV" load "$work/forged.tar" >/dev/null 2>&1
git init -q .
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
touch "$forged"
run_as root run --no-check --name first -e "B=$forged" words:v1 -- true "$forged" >/dev/null 2>&1
touch "other $forged"
run_as root run --no-check words:v1 -- true other "$forged" >/dev/null 2>&1
one_line() { # one_line ARGUMENT…: says the words, and none of its lines begins with them
  timeout 60 "$MLENV" "$@" >"$work/out" 2>"$work/err" </dev/null || true
  grep -q FORGED "$work/out" "$work/err" || fail "$*: says nothing of it: $(cat "$work/out" "$work/err")"
  if grep -nE "^[[:space:]]*hint: FORGED|$(printf '\033')" "$work/out" "$work/err"; then fail "$*: a forged line"; fi
}
one_line facts "$work/forged.json"
one_line check words:v1 --host "$work/forged.json"
one_line inspect forged:v1
one_line runs
one_line runs show last
one_line diff last~1 last
one_line inspect "$forged"
one_line pull "127.0.0.1:1/$forged"
rm -rf .git ./*

note "odd characters in paths"
odd=('col:on' 'com,ma' 'back\slash' 'a space' $'new\nline' "quo'te\"s" '%s $HOME [x]*' 'l=r;#' $'tab\tübung')
for who in root user; do
  for name in "${odd[@]}"; do
    place=$work/$who-place/$name
    mkdir -p "$place/p" "$place/tmp" "$place/data"
    chmod -R a+rwX "$work/$who-place"
    store=$place/store run_as "$who" load "$work/words.tar" >/dev/null 2>"$work/err" || fail "$who, load to $name: $(cat "$work/err")"
    for runtime in crun runc; do
      case $MLENV_TEST_LONG/$who/$runtime in 0/root/crun | 0/user/runc) continue ;; esac
      (
        cd "$place/p"
        export store=$place/store TMPDIR=$place/tmp
        ends_with 0 run_as "$who" run --no-check --runtime "$runtime" words:v1 -- touch "made-$runtime"
        [ -e "$place/p/made-$runtime" ] || fail "$who, $runtime, $name: not written into the project"
      )
    done
  done
done
left=$(find "$work/root-place" "$work/user-place" -path '*/store/tmp/*' -prune -print)
equal "scratch folders" "" "$left"
