#!/usr/bin/env bash
# Recipes of the catalog lock on this machine's indexes, and hold what their names say: some here, all
# with MLENV_TEST_LONG.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# The CUDA major that a recipe's lock must have; none for those that run on the processor.
cuda_of() {
  case $1 in
    pytorch-cuda | pytorch-openmpi | jax-cuda) echo 13 ;;
    pytorch-cuda12 | tensorflow-cuda) echo 12 ;;
  esac
}

recipes=(debian-pytorch pytorch-cuda12)
if [ "$MLENV_TEST_LONG" = 1 ]; then
  recipes=()
  for path in "$root"/recipes/catalog/*.yaml; do recipes+=("$(basename "$path" .yaml)"); done
fi
for name in "${recipes[@]}"; do
  equal "name in $name.yaml" "$name" "$(sed -n 's/^name: //p' "$root/recipes/catalog/$name.yaml")"
  lock=$(recipe "$name" | sed 's/yaml$/lock/')
  equal "CUDA of $name" "$(cuda_of "$name")" "$(sed -n 's/^cuda = "\([0-9]*\).*/\1/p' <(sed -n '/^\[resolved/,/^\[packages/p' "$lock"))"
  note "$name: $(grep -c '\.whl"' "$lock" || true) wheels"
done
