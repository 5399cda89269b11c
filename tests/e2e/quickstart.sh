#!/usr/bin/env bash
# The README's first command, in this checkout. The store has Debian's layer already, which base_store built as the
# command would.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
[ "$MLENV" = "$root/build/mlenv" ] || skip "not the binary in build/, which quickstart.sh would build"

export XDG_DATA_HOME=$work/data
base_store "$XDG_DATA_HOME/mlenv"
unset MLENV_STORE
bash "$root/examples/quickstart.sh" "$work/quickstart" | tee "$work/out"
grep -q 'accuracy 1.000' "$work/out" || fail "no accuracy of 1"
note "again"
began=$SECONDS
bash "$root/examples/quickstart.sh" "$work/quickstart" >"$work/out"
grep -q 'accuracy 1.000' "$work/out" || fail "no accuracy of 1 the second time"
[ $((SECONDS - began)) -lt 60 ] || fail "the second time takes $((SECONDS - began)) s"
