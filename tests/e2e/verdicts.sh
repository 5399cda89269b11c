#!/usr/bin/env bash
# What `mlenv check` says of the hosts and images of tests/verdicts is what the vendors' documents
# and public failure reports say.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need python3
cd "$work"

for host in "$root"/tests/verdicts/hosts/*.json; do
  "$MLENV" facts --json "$host" >facts.json || fail "$host cannot be read"
done
python3 -B "$root/tests/verdicts/check.py" "$MLENV"

python3 -B "$root/tests/verdicts/nodes.py" "$MLENV"

note "hosts and images that nobody thought of"
seed=1 count=60
[ "$MLENV_TEST_LONG" = 0 ] || seed=$(date +%s) count=600
python3 -B "$root/tests/verdicts/random_cells.py" "$MLENV" "$seed" "$count" 20
