#!/usr/bin/env bash
# Docker runs the image, after `docker load` of our archive and after push and `docker pull`; both
# are the same image to it. An image of Debian with NumPy; with MLENV_TEST_LONG=1 jax-cpu, in which the example trains.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/engines.sh
. "$(dirname "$0")/../support/engines.sh"
need dockerd docker
need_root

name=jax-cpu
program=(train-jax.py)
answer='accuracy 1.000'
if [ "$MLENV_TEST_LONG" = 1 ]; then
  shared_image $name
else
  name=small
  program=(-c 'import numpy, os; print("sum", numpy.arange(5).sum(), os.path.exists("train-jax.py"))')
  answer='^sum 10 True$'
  shared_small
fi
"$MLENV" build "$recipe_path" --locked --output "docker-archive:$work/image.tar" >/dev/null

# shellcheck disable=SC2119  # no options
start_docker
dock() { as_root docker --host "$DOCKER_HOST" "$@"; }

works() { # works IMAGE
  dock run --rm --network host -v "$root/examples:/workspace:ro" "$1" python "${program[@]}" |
    tee "$work/out"
  grep -q "$answer" "$work/out" || fail "not a word of $answer under docker"
}

note "docker load"
dock load --quiet --input "$work/image.tar"
rm "$work/image.tar"
loaded=$(dock image inspect --format '{{.Id}}' "$name:latest")
works "$name:latest"
dock rmi --force "$name:latest" >/dev/null

note "push and docker pull"
start_registry
"$MLENV" push "$name" "$registry/$name:v1" >/dev/null
dock pull --quiet "$registry/$name:v1"
equal "image id after pull" "$loaded" "$(dock image inspect --format '{{.Id}}' "$registry/$name:v1")"
equal "digest after pull" "$registry/$name@$image" \
  "$(dock image inspect --format '{{index .RepoDigests 0}}' "$registry/$name:v1")"
works "$registry/$name:v1"

note "and back: mlenv pull into an empty store"
MLENV_STORE=$work/pulled "$MLENV" pull "$registry/$name:v1" | tail -n 1 >"$work/digest"
equal "digest after mlenv pull" "$image" "$(cat "$work/digest")"
verify_store "$work/pulled"
