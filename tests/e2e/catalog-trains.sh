#!/usr/bin/env bash
# The catalog's recipes for the processor build, and something small trains in each: tests/e2e/jax-*.sh have
# jax-cpu; the others are here, two of them only with MLENV_TEST_LONG=1.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc

trains() { # trains RECIPE SCRIPT WORDS: the script, in examples/, ends well and says the words
  shared_image "$1"
  note "$1: $image"
  (cd "$root/examples/$(dirname "$2")" && "$MLENV" run "$1" -- python3 "$(basename "$2")") >"$work/out" 2>&1 ||
    fail "$1: $(tail -n 20 "$work/out")"
  grep -qE "$3" "$work/out" || fail "$1: $(cat "$work/out")"
  note "$(tail -n 1 "$work/out")"
}

trains scikit-learn train-sklearn.py 'accuracy 0\.9[5-9]'
note "scikit-learn: several at once"
(cd "$root/examples" && "$MLENV" run --results "$work/sweep" --matrix rate=0.1,0.3 --parallel 2 scikit-learn -- \
  python3 sweep-sklearn.py --rate '{rate}' --leaves 8) >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
equal "accuracies" 2 "$(grep -cE ' done .* 0\.9[0-9]* ' "$work/out")"
trains bert-tensorflow bert/train.py 'neighs at noon'
trains debian-pytorch train-torch.py 'accuracy (0\.9[5-9]|1\.0)'

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
shared_image tensorflow-cpu
"$MLENV" run tensorflow-cpu -- python -c 'import tensorflow as tf
x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    loss = x * x
assert tape.gradient(loss, x).numpy() == 6'
note "tensorflow-cpu: $image"
shared_image data-science
"$MLENV" run data-science -- python -c 'import matplotlib.pyplot as plot, numpy, pandas, pyarrow, sklearn
frame = pandas.DataFrame({"x": numpy.arange(9.0)})
frame.to_parquet("/tmp/x.parquet")
assert pandas.read_parquet("/tmp/x.parquet").equals(frame)
plot.plot(frame.x)
plot.savefig("/tmp/x.png")'
"$MLENV" run data-science -- jupyter lab --version
note "data-science: $image"
