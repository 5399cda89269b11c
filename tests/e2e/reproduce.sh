#!/usr/bin/env bash
# `--outputs` and `mlenv reproduce`: a run is repeated from its record, bit for bit, without touching
# anything of the person's; a planted change is noticed. As root and as an ordinary user.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc git
need_root

small_tree
user_store

make_project() { # make_project FOLDER: a program that trains on data, with randomness that nobody seeds
  mkdir -p "$1/data"
  git init -q -b main "$1"
  cat >"$1/train.py" <<'JOB'
import os, pathlib, random, sys
data = pathlib.Path("/data/words").read_text()
seed = random.random()
out = pathlib.Path("out")
(out / "deep").mkdir(parents=True, exist_ok=not sys.argv[1:])
(out / "weights").write_bytes(bytes(5000) + random.Random(f"{seed}{data}").randbytes(3000))
(out / "deep" / "log").write_text("trained with " + str(len(os.environ.get("API_TOKEN", ""))))
os.symlink("weights", out / "newest") if not (out / "newest").is_symlink() else None
JOB
  printf 'data/\n' >"$1/.gitignore"
  git -C "$1" add .
  git -C "$1" -c user.name=a -c user.email=a@b commit -q -m x
  echo 'first second' >"$1/data/words"
}

state_of() { # state_of FOLDER: of all its files but git's
  (cd "$1" && find . -path ./.git -prune -o -printf '%p %s %T@ %l\n' | LC_ALL=C sort)
  git -c safe.directory='*' -C "$1" rev-parse HEAD
}

run_as() { # run_as WHO ARGUMENT…: mlenv in that one's project
  local who=$1
  shift
  if [ "$who" = root ]; then
    (cd "$work/root" && "$MLENV" "$@")
  else
    (cd "$user_home/project" && as_user ${token:+"API_TOKEN=$token"} MLENV_STORE="$user_home/store" mlenv "$@")
  fi
}
status_of() { # status_of WHO ARGUMENT…
  local status=0
  run_as "$@" >"$work/out" 2>"$work/err" || status=$?
  echo "$status"
}
recorded() { [ "$(run_as "$1" --json runs show last | jq '.code != null and .host != null')" = true ]; }

token=
make_project "$work/root"
make_project "$work/for-user"
as_root mv "$work/for-user" "$user_home/project"
as_root chown -R "$user_id:$user_id" "$user_home/project"

for who in root user; do
  project=$work/root
  [ "$who" = root ] || project=$user_home/project

  note "$who: the same"
  equal "$who: run" 0 "$(status_of "$who" run --deterministic --outputs out --outputs none -v "$project/data:/data" small -- python train.py)"
  grep -q 'the run left no .none.' "$work/err" || fail "$who: nothing said: $(cat "$work/err")"
  wait_until 30 recorded "$who"
  run_as "$who" --json runs show last >"$work/record"
  python3 "$root/tests/schema/check.py" <"$work/record" >/dev/null
  id=$(jq -r .start.id "$work/record")
  equal "$who: outputs" "out folder 3, none absent 0" "$(jq -r '.end.outputs | map("\(.path) \(.kind) \(.files | length)") | join(", ")' "$work/record")"
  equal "$who: a file" "sha256:$(as_root sha256sum "$project/out/weights" | cut -d' ' -f1)" \
    "$(jq -r '.end.outputs[0].files[] | select(.path == "weights").digest' "$work/record")"
  as_root bash -c "$(declare -f state_of); state_of $project" >"$work/before"
  equal "$who: reproduce" 0 "$(status_of "$who" --json reproduce "$id")"
  python3 "$root/tests/schema/check.py" <"$work/out" >/dev/null
  equal "$who: what it says" "same present same same same same" "$(jq -r '[.result, .code, .files[].what] | join(" ")' "$work/out")"
  equal "$who: the new record" "$id" "$(run_as "$who" --json runs show "$(jq -r .by "$work/out")" | jq -r .start.reproduces)"
  as_root bash -c "$(declare -f state_of); state_of $project" | diff "$work/before" - || fail "$who: the project was changed"

  note "$who: other code; the commit counts, or the present where that is asked for"
  as_root sed -i 's/seed = random.random()/seed = 7/' "$project/train.py"
  equal "$who: from the commit" 0 "$(status_of "$who" --json reproduce "$id")"
  equal "$who: from the commit" commit "$(jq -r .code "$work/out")"
  equal "$who: with the present code" 3 "$(status_of "$who" --json reproduce "$id" --with-present-code)"
  equal "$who: what differs" "present-changed differs 8000 8000 5000" \
    "$(jq -r '.code + " " + (.files[] | select(.path == "out/weights") | "\(.what) \(.recorded_bytes) \(.found_bytes) \(if .first_difference >= 5000 and .first_difference < 5010 then 5000 else .first_difference end)")' "$work/out")"
  equal "$who: the rest" "same same same" "$(jq -r '[.files[] | select(.path != "out/weights").what] | join(" ")' "$work/out")"
  equal "$who: as text" 3 "$(status_of "$who" reproduce "$id" --with-present-code)"
  grep -qE '^differs  out/weights  8000 bytes, from byte 50' "$work/out" || fail "$who: $(cat "$work/out")"
  grep -q '^possible cause: code: ' "$work/out" || fail "$who: $(cat "$work/out")"
  as_root bash -c "cd $project && sed -i 's/seed = 7/seed = random.random()/' train.py"

  note "$who: other data"
  echo 'first Second' | as_root tee "$project/data/words" >/dev/null
  equal "$who: other data" 3 "$(status_of "$who" --json reproduce "$id")"
  echo 'first second' | as_root tee "$project/data/words" >/dev/null
  equal "$who: the same data" 0 "$(status_of "$who" reproduce "$id")"
done

note "of a run in the background, with limits"
(
  cd "$work/root"
  id=$("$MLENV" run -d --name back --memory 1g --network none --deterministic --outputs out -v "$work/root/data:/data" small -- python train.py)
  equal "its end" 0 "$("$MLENV" wait back)"
  wait_until 30 recorded root
  equal "its outputs" "out folder 3" "$("$MLENV" --json runs show "$id" | jq -r '.end.outputs[] | "\(.path) \(.kind) \(.files | length)"')"
  "$MLENV" --json reproduce "$id" >"$work/out"
  equal "what came of it" same "$(jq -r .result "$work/out")"
  equal "how it was repeated" "null false 1073741824 none" "$("$MLENV" --json runs show "$(jq -r .by "$work/out")" |
    jq -r '.start | "\(.name) \(.detached) \(.options.limits.memory_bytes) \(.options.network)"')"
)

note "a run that is not deterministic differs, and what changed the code is refused"
cd "$work/root"
cp train.py own.py # a file that the commit has not got
"$MLENV" run --outputs out -v "$work/root/data:/data" small -- python own.py 2>"$work/err"
wait_until 30 recorded root
equal "not deterministic" 3 "$(status_of root --json reproduce last)"
jq -e '.causes | index("the run was not `--deterministic`") != null' "$work/out" >/dev/null || fail "no cause: $(cat "$work/out")"
"$MLENV" run --deterministic --outputs out -v "$work/root/data:/data" small -- python own.py
wait_until 30 recorded root
id=$("$MLENV" --json runs show last | jq -r .start.id)
equal "files that the commit has not got" 0 "$(status_of root reproduce "$id")"
echo '# other' >>own.py
failing_with code-differs "$MLENV" --json reproduce "$id"
grep -qF 'own.py' "$work/err" || fail "not named: $(cat "$work/err")"

note "a folder that was there is there, empty"
git add own.py && git -c user.name=a -c user.email=a@b commit -q -m y
"$MLENV" run --deterministic --outputs out -v "$work/root/data:/data" small -- python own.py
wait_until 30 recorded root
equal "its files are made anew" 0 "$(status_of root --json reproduce last)"

note "secrets are given again"
API_TOKEN=word "$MLENV" run --deterministic --outputs out -e API_TOKEN -e "WHERE=https://me:word@host/" -v "$work/root/data:/data" small -- \
  sh -c 'python own.py' --password word
wait_until 30 recorded root
id=$("$MLENV" --json runs show last | jq -r .start.id)
failing_with masked "$MLENV" --json reproduce "$id"
for name in API_TOKEN WHERE 'whole, behind'; do grep -qF -e "$name" "$work/err" || fail "$name is not named: $(cat "$work/err")"; done
API_TOKEN=word "$MLENV" reproduce -e API_TOKEN -e WHERE=x "$id" -- sh -c 'python own.py' --password word >"$work/out"
if API_TOKEN=longer "$MLENV" reproduce -e API_TOKEN -e WHERE=x "$id" -- sh -c 'python own.py' --password word >"$work/out"; then
  fail "another secret gave the same"
fi
grep -q '^differs  out/deep/log' "$work/out" || fail "$(cat "$work/out")"
failing_with usage "$MLENV" --json reproduce -e API_TOKEN=word -e WHERE=x "$id" -- sh -c 'rm -r out' --password word

note "what cannot be repeated"
"$MLENV" run small -- true
failing_with cannot-reproduce "$MLENV" --json reproduce last
failing_with bad-run-output "$MLENV" --json run --outputs /tmp/x small -- true
mkdir "$work/mounted"
"$MLENV" run --no-project -v "$work/mounted:/out" --outputs /out small -- sh -c 'echo x >/out/x'
equal "a mount as the output" 0 "$(status_of root reproduce last)"
id=$("$MLENV" --json runs show last | jq -r .start.id)
mv "$work/mounted" "$work/elsewhere"
failing_with mount-gone "$MLENV" --json reproduce "$id"
mv "$work/elsewhere" "$work/mounted"
mkdir "$work/other-store"
base_store "$work/other-store"
cp -a "$MLENV_STORE/runs" "$work/other-store/"
MLENV_STORE=$work/other-store failing_with image-gone "$MLENV" --json reproduce "$id"
equal "nothing is left" "" "$(find "$MLENV_STORE/tmp" -mindepth 1 -maxdepth 1)"
verify_store
