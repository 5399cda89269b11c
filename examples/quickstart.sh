#!/usr/bin/env bash
# From a fresh Debian machine to a trained model: installs what building mlenv needs, builds it,
# builds an image with JAX from the catalog, and trains a small network in it. Run it again: it is quick.
#   examples/quickstart.sh [WORK FOLDER]      (default: ~/mlenv-quickstart)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$HOME/mlenv-quickstart}
began=$SECONDS

tell() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || tell() { printf '\n%s\n' "$*"; }
# Shows a command as it would be typed, then runs it.
typed() {
  printf '$ %s\n' "$*"
  "$@"
}

tell "1. What building needs"
"$root/.ci/install" build run
installed=$((SECONDS - began))

tell "2. mlenv itself"
compiled=$SECONDS
cd "$root"
cmake -B build -G Ninja -DMLENV_TESTS=OFF >/dev/null
cmake --build build --target mlenv
compiled=$((SECONDS - compiled))
export PATH=$root/build:$PATH
typed mlenv --version

tell "3. An image with JAX"
mkdir -p "$work"
cd "$work"
[ -e jax-cpu.yaml ] || cp "$root/recipes/catalog/jax-cpu.yaml" .
cp "$root/examples/train-jax.py" .
built=$SECONDS
typed mlenv build jax-cpu.yaml
built=$((SECONDS - built))

tell "4. Training in it"
trained=$SECONDS
typed mlenv run jax-cpu -- python train-jax.py
trained=$((SECONDS - trained))

tell "What happened"
cat <<DONE
In $work:
  jax-cpu.yaml    what was wanted
  jax-cpu.lock    every wheel and Debian package of it, by sha256
  jax-cpu.built   the digests of image and layers, the same on every machine
  train-jax.py    ran in the image, with this folder as its working folder
Packages took $installed s, mlenv $compiled s, the image $built s, the training $trained s, all together $((SECONDS - began)) s.
mlenv lies in $root/build/mlenv. Next:
  mlenv images
  mlenv run jax-cpu -- python
  mlenv build jax-cpu.yaml --output docker-archive:jax-cpu.tar && docker load -i jax-cpu.tar
DONE
