#!/usr/bin/env bash
# The JSON Schema of recipes says of every recipe in the tree, and of made-up ones, what the parser says;
# `mlenv init --schema` prints it.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
python3 -c 'import jsonschema, yaml' 2>/dev/null || skip "python3-jsonschema or python3-yaml is not installed"

"$MLENV" init --schema | cmp - "$root/recipes/recipe.schema.json" || fail "another schema is printed"
python3 "$root/tests/schema/recipes.py" "$root"/recipes/catalog/*.yaml "$root"/tests/fuzz/corpus/recipe/*.yaml \
  "$root"/tests/golden/*.d/*.yaml || fail "see above"
