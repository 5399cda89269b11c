#!/usr/bin/env bash
# Docker runs the image, after `docker load` of our archive and after push and `docker pull`; both
# are the same image to it.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need dockerd docker
need_root

shared_image jax-cpu
"$MLENV" build "$recipe_path" --locked --output "docker-archive:$work/jax.tar" >/dev/null

# shellcheck disable=SC2119  # no options
start_docker
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }

trains() { # trains IMAGE
  dock run --rm --network host -v "$root/examples:/workspace:ro" "$1" python train-jax.py |
    tee "$work/out"
  grep -q 'accuracy 1.000' "$work/out" || fail "no accuracy of 1 under docker"
}

note "docker load"
dock load --quiet --input "$work/jax.tar"
rm "$work/jax.tar"
loaded=$(dock image inspect --format '{{.Id}}' jax-cpu:latest)
trains jax-cpu:latest
dock rmi --force jax-cpu:latest >/dev/null

note "push and docker pull"
start_registry
"$MLENV" push jax-cpu "$registry/jax-cpu:v1" >/dev/null
dock pull --quiet "$registry/jax-cpu:v1"
equal "image id after pull" "$loaded" "$(dock image inspect --format '{{.Id}}' "$registry/jax-cpu:v1")"
equal "digest after pull" "$registry/jax-cpu@$image" \
  "$(dock image inspect --format '{{index .RepoDigests 0}}' "$registry/jax-cpu:v1")"
trains "$registry/jax-cpu:v1"

note "and back: mlenv pull into an empty store"
MLENV_STORE=$work/pulled "$MLENV" pull "$registry/jax-cpu:v1" | tail -n 1 >"$work/digest"
equal "digest after mlenv pull" "$image" "$(cat "$work/digest")"
verify_store "$work/pulled"
