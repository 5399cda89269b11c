#!/usr/bin/env bash
# The catalog's recipes for the processor build, and something small trains in each: TensorFlow in
# bert-tensorflow, where one gradient is enough in every run. Only with MLENV_TEST_LONG=1 BERT is trained, as are
# scikit-learn and the others, and several run at once (run-matrix.sh). deterministic.sh and quickstart.sh train in jax-cpu in every run.
# first
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

gradient() { # gradient RECIPE: by TensorFlow
  shared_image "$1"
  "$MLENV" run "$1" -- python -c 'import tensorflow as tf
x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    loss = x * x
assert tape.gradient(loss, x).numpy() == 6'
  note "$1: $image"
}
gradient bert-tensorflow

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
trains scikit-learn train-sklearn.py 'accuracy 0\.9[5-9]'
note "scikit-learn: several at once"
(cd "$root/examples" && "$MLENV" run --results "$work/sweep" --matrix rate=0.1,0.3 --parallel 2 scikit-learn -- \
  python3 sweep-sklearn.py --rate '{rate}' --leaves 8) >"$work/out" 2>"$work/err" || fail "$(cat "$work/err")"
equal "accuracies" 2 "$(grep -cE ' done .* 0\.9[0-9]* ' "$work/out")"
trains bert-tensorflow bert/train.py 'neighs at noon'
trains debian-pytorch train-torch.py 'accuracy (0\.9[5-9]|1\.0)'
gradient tensorflow-cpu
shared_image data-science
"$MLENV" run data-science -- python -c 'import matplotlib.pyplot as plot, numpy, pandas, pyarrow, sklearn
frame = pandas.DataFrame({"x": numpy.arange(9.0)})
frame.to_parquet("/tmp/x.parquet")
assert pandas.read_parquet("/tmp/x.parquet").equals(frame)
plot.plot(frame.x)
plot.savefig("/tmp/x.png")'
"$MLENV" run data-science -- jupyter lab --version
note "data-science: $image"
