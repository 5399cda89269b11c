#!/usr/bin/env bash
# mlenv init --from docker:NAME and podman:NAME: a container that somebody works in becomes a recipe that locks, and
# its image too; secrets and what was mounted stay out, and nothing of it is run or left behind.
# shellcheck disable=SC2016,SC2119 # backticks stand in messages; no options
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need dockerd docker podman runc
need_root
trap 'status=$?; set +e; end_engines; (exit "$status"); finish_test' EXIT

cd "$work"
cat >lab.yaml <<'END'
name: lab
base: debian:bookworm
python: "3.11"
packages: [idna==3.7, six]
env: {LAB_MODE: "on", LAB_TOKEN: given-away}
workdir: /srv
END
base_tree
"$MLENV" build lab.yaml --output "docker-archive:$work/lab.tar" >/dev/null 2>err || fail "build: $(cat err)"

start_docker
podman_settings
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }
pod() { as_engine_root podman "$@"; }

lock_names() { grep -oE 'name = "[^"]+", version = "[^"]+"' "$1" | LC_ALL=C sort; }

mkdir converted data
cd converted
for engine in docker podman; do
  case $engine in docker) ask=dock init=(as_root env DOCKER_HOST="$DOCKER_HOST") ;; podman) ask=pod init=() && set_root_words && init=("${root_words[@]}") ;; esac
  note "$engine: a container that sleeps"
  "$ask" load --quiet --input "$work/lab.tar" >/dev/null
  # What the image has is not asked for by what it would do when it is run.
  "$ask" create --name lab --network none --env RUN_ID=7 --volume "$work/data:/data" lab sleep 60 >/dev/null
  before=$("$ask" ps --all --quiet | wc -l)
  "${init[@]}" "$MLENV" init --force --from "$engine:lab" 2>"$work/err" >"$work/out" || fail "init: $(cat "$work/err")"
  equal "$engine: containers" "$before" "$("$ask" ps --all --quiet | wc -l)"
  equal "$engine: answer" recipe.yaml "$(cat "$work/out")"
  for line in 'name: lab' 'base: debian:bookworm' 'python: "3.11"' '  LAB_MODE: "on"' 'workdir: /srv' '  - idna==3.7'; do
    grep -qx -- "$line" recipe.yaml || fail "$engine: no line \`$line\`: $(cat recipe.yaml)"
  done
  grep -qE '^  - six==1\.' recipe.yaml || fail "$engine: six has no version: $(cat recipe.yaml)"
  grep -q 'LAB_TOKEN' "$work/err" || fail "$engine: the secret's name is not told: $(cat "$work/err")"
  grep -q '/data' "$work/err" || fail "$engine: the mount is not told: $(cat "$work/err")"
  ! grep -qE 'given-away|RUN_ID: ' recipe.yaml "$work/err" || fail "$engine: a value is in it: $(cat recipe.yaml)"
  ! grep -q '^command' recipe.yaml || fail "$engine: it would sleep: $(cat recipe.yaml)"
  "$MLENV" lock 2>"$work/err" || fail "no lock: $(cat "$work/err" recipe.yaml)"
  diff <(lock_names "$work/lab.lock") <(lock_names recipe.lock) || fail "$engine: other packages than the image's"

  note "$engine: an image, of which no container is left"
  cp recipe.yaml "$work/of-container.yaml"
  "$ask" rm --force lab >/dev/null
  "${init[@]}" "$MLENV" init --force --from "$engine:lab:latest" --name lab 2>"$work/err" >/dev/null || fail "init: $(cat "$work/err")"
  equal "$engine: packages" "$(grep -E '^  - ' "$work/of-container.yaml")" "$(grep -E '^  - ' recipe.yaml)"
  equal "$engine: no container is left" "" "$("$ask" ps --all --quiet)"
  failing_with source-invalid "${init[@]}" "$MLENV" --json init --force --from "$engine:nobody"
  failing_with source-invalid "${init[@]}" "$MLENV" --json init --force --from "$engine:"
  failing_with source-invalid "${init[@]}" "$MLENV" --json init --force --from "$engine:--help"
done
