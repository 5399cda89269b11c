#!/usr/bin/env bash
# `crane validate` accepts the pushed image: every digest, diff-id and size of every layer.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
PATH=$PATH:/usr/local/go/bin

crane=$XDG_CACHE_HOME/bin/crane
if [ ! -x "$crane" ]; then
  command -v go >/dev/null || skip "no Go to build crane with"
  note "building crane"
  GOBIN=$work/gobin GOFLAGS=-mod=mod go install github.com/google/go-containerregistry/cmd/crane@v0.19.2 ||
    skip "crane cannot be built here"
  mkdir -p "${crane%/*}"
  mv "$work/gobin/crane" "$crane"
fi

shared_image jax-cpu
start_registry
equal "digest that push prints" "$image" "$("$MLENV" push jax-cpu "$registry/jax-cpu:v1" | tail -n 1)"
equal "digest by crane" "$image" "$("$crane" digest --insecure "$registry/jax-cpu:v1")"
"$crane" validate --insecure --remote "$registry/jax-cpu:v1"
