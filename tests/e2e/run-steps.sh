#!/usr/bin/env bash
# `run` steps: what they see and leave, for root and an ordinary user alike; secrets that are stored
# nowhere; layers that are reused, recorded and brought from another machine; failures and signals.
# shellcheck disable=SC2016 # the steps' own words
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc jq
need_root

project=$work/project
path=$project/steps.yaml
built=$project/steps.built
secret=hunter2-$RANDOM-$RANDOM-secret
mkdir -p "$project/src"
echo 'from the project' >"$project/src/input"
echo "$secret" >"$work/token"
cat >"$project/src/shut.sh" <<'SHUT'
useradd -m bob
mkdir -p /home/bob/sub/own /home/eve
touch /home/bob/sub/x /home/eve/x
chown -R bob /home/bob/sub /home/eve
touch /home/bob/of-root /home/eve/of-root
chmod 700 /home/bob /home/bob/sub /home/eve
SHUT
recipe_with() { # recipe_with: the steps come from standard input
  printf 'name: steps\nbase: debian:bookworm\npython: "3.11"\nfiles: {src: /workspace}\nenv: {COLOUR: red}\nrun:\n' >"$path"
  cat >>"$path"
}
builds() { # builds ARGUMENT…: the digest in $image, the story in $work/err
  "$MLENV" build "$@" "$path" >"$work/out" 2>"$work/err" || fail "build says: $(cat "$work/err")"
  image=$(tail -n 1 "$work/out")
}
refused() { # refused STATUS WORDS ARGUMENT…
  local status=0 expected=$1 words=$2
  shift 2
  "$MLENV" build "$@" "$path" >"$work/out" 2>"$work/err" || status=$?
  equal "status" "$expected" "$status"
  grep -qF -- "$words" "$work/err" || fail "says: $(cat "$work/err")"
}
inside() { "$MLENV" run --no-project steps -- "$@"; }
base_tree

note "what steps see and leave"
recipe_with <<'STEPS'
  - |
    echo "$COLOUR $HOME $PWD $(umask) $(id -u) $(cat input)" > /opt/seen
    test ! -e /run/secrets/token
    chown www-data:www-data input
    rm /etc/debian_version
    rm -r /usr/share/doc; mkdir /usr/share/doc
    touch /tmp/left /run/left
  - {run: "cut -c 1-7 /run/secrets/token > /opt/part; cat /run/secrets/token; sh shut.sh", secrets: [token]}
  - cat /home/bob/of-root; touch /home/beside; rm -r /home/eve
  - python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))'
STEPS
refused 2 'needs the secret `token`'
failing_with bad-secret "$MLENV" --json build --secret id=token,src="$work/absent" "$path"
builds --secret id=token,src="$work/token" --verbose
grep -qF '***' "$work/err" || fail "the step's output is not in the log"
first=$image
equal "seen" "red /root /workspace 0022 0 from the project" "$(inside cat /opt/seen)"
equal "part of a secret" "${secret:0:7}" "$(inside cat /opt/part)"
equal "owners" "www-data bob root bob" \
  "$(inside stat -c %U input /home/bob /home/bob/of-root /home/bob/sub/x | xargs)"
equal "gone" "" "$(inside sh -c 'ls -A /usr/share/doc /tmp; ls /etc/debian_version' 2>/dev/null | grep -v :)"
equal "times" "0" "$(inside stat -c %Y /opt/seen)"
mkdir "$work/image"
"$MLENV" save steps "oci:$work/image"
third=$("$MLENV" --json inspect steps | jq -r '.layers[] | select(.title | startswith("run: cat /home")).digest')
equal "what a step beside another owner's folder changed" "home/ home/beside home/.wh.eve" \
  "$(tar tzf "$work/image/blobs/sha256/${third#sha256:}" | xargs)"
found=$(grep -rlF "$secret" "$MLENV_STORE" "$project" "$work/image" "$work/err" || true)
for layer in "$work"/image/blobs/sha256/*; do
  if zcat -f "$layer" | grep -qF "$secret"; then found+=" $layer"; fi
done
equal "places with the secret" "" "$found"
verify_store

note "nothing is executed twice"
builds --locked --explain
equal "the image" "$first" "$image"
equal "reused steps" 4 "$(grep -c '^reused *run: ' "$work/out")"

note "an ordinary user gets the same layers"
make_user
as_root install -d -o "$user_id" -g "$user_id" "$user_home/p"
cp -r "$project/src" "$path" "${path%.yaml}.lock" "$user_home/p"
as_root chown -R "$user_id:$user_id" "$user_home/p"
base_store "$user_home/store"
as_root chown -R "$user_id:$user_id" "$user_home/store"
equal "the image" "$first" "$(as_user MLENV_STORE="$user_home/store" TOKEN="$secret" mlenv build --locked \
  --secret id=token,env=TOKEN "$user_home/p/steps.yaml" | tail -n 1)"
drop "$user_home/store"

note "a step that is never the same"
recipe_with <<'STEPS'
  - cat /proc/sys/kernel/random/uuid > /opt/uuid
  - cp /opt/uuid /opt/copy
STEPS
start_registry
remote=(--push "$registry/team/steps:1" --plain-http)
builds "${remote[@]}"
second=$image
cp "$built" "$work/first.built"
export MLENV_STORE=$work/other
base_tree
failing_with run-differs "$MLENV" --json build --locked "$path"
grep -qF "$second" "$work/err" || fail "the recorded image is not named: $(cat "$work/err")"
cmp "$built" "$work/first.built"
builds
grep -qF 'it now has the new digests: `run: cat' "$work/err" || fail "no note: $(cat "$work/err")"
if cmp -s "$built" "$work/first.built"; then fail "the record was not replaced"; fi
cp "$work/first.built" "$built"
builds --locked --explain "${remote[@]}"
equal "the image with the layers of another machine" "$second" "$image"
equal "made steps" 0 "$(grep -c '^made *run: ' "$work/out" || true)"

note "failures"
recipe_with <<<'  - "echo before; exit 3"'
refused 1 'it ended with status 3'
grep -qF 'steps.yaml:7:5' "$work/err" || fail "no place: $(cat "$work/err")"
grep -qF '    before' "$work/err" || fail "no output: $(cat "$work/err")"
recipe_with <<<'  - {run: cp /run/secrets/token /etc, secrets: [token]}'
refused 1 '`/etc/token` holds the secret `token`' --secret id=token,src="$work/token"
recipe_with <<<'  - python3 -c "import socket; socket.getaddrinfo(\"a.example\", 80)"'
refused 1 'network: true'
if grep -rqF "$secret" "$MLENV_STORE"; then fail "the secret is in the store"; fi

note "signals end what a step runs"
nap=$((86400 + $$))
recipe_with <<<"  - sleep $nap & sleep $nap"
for signal in INT KILL; do
  env --default-signal=INT "$MLENV" build "$path" >/dev/null 2>&1 &
  build=$!
  wait_until 60 pgrep -xf "sleep $nap"
  kill "-$signal" "$build"
  wait "$build" 2>/dev/null || true
  wait_until 10 bash -c "! pgrep -xf 'sleep $nap'"
done
verify_store
