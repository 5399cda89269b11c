#!/usr/bin/env bash
# What never ends, in the place of what does: heads of answers, pipes and devices in the place of files. Each
# command has an end by itself. (Bodies that drip are unit tests: a minute is too long here.)
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/both.sh
. "$root/tests/support/both.sh"
need python3
unset NETRC
export HOME=$work/home DOCKER_CONFIG=$work/docker XDG_CONFIG_HOME=$work/home/.config
mkdir -p "$XDG_CONFIG_HOME/mlenv" "$DOCKER_CONFIG" "$work/project" "$work/bin"
port=$(free_port)
start "$work/server" python3 "$root/tests/support/hostile_registry.py" "$port" "$work/log"
wait_until 10 bash -c ": </dev/tcp/127.0.0.1/$port"
at=127.0.0.1:$port

# ends CODE COMMAND…: with that code, within ten seconds.
ends() {
  local code=$1 status=0
  shift
  timeout -k 1 10 "$@" </dev/null >"$work/out" 2>"$work/err" || status=$?
  if [ "$status" = 124 ] || [ "$status" = 137 ]; then fail "no end: $*"; fi
  grep -qF "\"code\":\"$code\"" "$work/err" || fail "not $code: $*: $(cat "$work/err")"
}
# in_place CODE PATH COMMAND…: with a pipe that nobody writes to there, a link to one, and a device without an end.
in_place() {
  local code=$1 path=$2
  shift 2
  rm -f "$path"
  mkfifo "$path"
  ends "$code" "$@"
  mv "$path" "$work/pipe"
  ln -s "$work/pipe" "$path"
  ends "$code" "$@"
  ln -sf /dev/zero "$path"
  ends "$code" "$@"
  rm "$path" "$work/pipe"
}

note "heads without an end"
ends too-large "$MLENV" --json pull "$at/heads/x:v1"
ends too-large "$MLENV" --json pull "$at/continues/x:v1"

note "docker's configuration, mlenv's own, ~/.netrc"
in_place not-a-file "$DOCKER_CONFIG/config.json" "$MLENV" --json pull "$at/basic/x:v1" --plain-http
in_place not-a-file "$XDG_CONFIG_HOME/mlenv/config.yaml" "$MLENV" --json pull "$at/ok/x:v1"
note "what lies in a project that somebody else made"
cd "$work/project"
echo hello >hello
printf 'name: x\nbase: debian:bookworm\nfiles: {hello: /workspace/hello}\n' >recipe.yaml
in_place not-a-file recipe.lock "$MLENV" --json lock recipe.yaml
in_place not-a-file other.yaml "$MLENV" --json lock other.yaml
printf 'name: x\nbase: debian:bookworm\nrequirements: requirements.txt\n' >recipe.yaml
in_place recipe-invalid requirements.txt "$MLENV" --json lock recipe.yaml
in_place not-a-file job.yaml "$MLENV" --json run job.yaml
failing_with not-a-file timeout 30 "$MLENV" --json load /dev/zero
in_place not-a-file facts.json "$MLENV" --json facts facts.json
in_place bad-env-file .env "$MLENV" --json run --no-project --no-check --env-file .env x -- true
ends not-found "$MLENV" --json run --no-project --no-check --env-file <(echo A=b) x -- true

note "a credential helper whose answer is larger than a login"
printf '#!/bin/sh\nhead -c 3000000 /dev/zero | tr "\\0" "["\n' >"$work/bin/docker-credential-large"
chmod +x "$work/bin/docker-credential-large"
export PATH=$work/bin:$PATH
printf '{"credsStore": "large"}' >"$DOCKER_CONFIG/config.json"
ends credentials "$MLENV" --json pull "$at/basic/x:v1" --plain-http
