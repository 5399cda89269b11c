#!/usr/bin/env bash
# `crane validate` accepts the pushed image: every digest, diff-id and size of every layer.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/support/crane.sh
. "$root/tests/support/crane.sh"
crane_program

shared_small
start_registry
equal "digest that push prints" "$image" "$("$MLENV" push small "$registry/small:v1" | tail -n 1)"
equal "digest by crane" "$image" "$("${crane:?}" digest --insecure "$registry/small:v1")"
"$crane" validate --insecure --remote "$registry/small:v1"
