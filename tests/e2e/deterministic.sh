#!/usr/bin/env bash
# `mlenv run --deterministic`: the same bits each time, where without it they differ; the layer that
# does it breaks no program. torch and TensorFlow with MLENV_TEST_LONG=1.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
need runc jq git

mkdir "$work/project"
cd "$work/project"
cat >jax_job.py <<'JOB'
import random, sys
import jax, jax.numpy as jnp
import numpy as np
x = np.random.randn(256, 32).astype(np.float32)
w = jnp.array(np.random.default_rng().standard_normal((32, 32)).astype(np.float32) * random.random())
step = jax.jit(jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) @ w - x) ** 2)))
for _ in range(50):
    w = w - 0.1 * step(w)
np.save(sys.argv[1], np.asarray(w))
JOB
cat >torch_job.py <<'JOB'
import sys
import torch
assert torch.are_deterministic_algorithms_enabled() == (len(sys.argv) == 2)
x = torch.randn(512, 32)
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 1))
optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(50):
    optimiser.zero_grad()
    ((net(x)[:, 0] - x.sum(1)) ** 2).mean().backward()
    optimiser.step()
torch.cat([p.detach().flatten() for p in net.parameters()]).numpy().tofile(sys.argv[1])
JOB
cat >tensorflow_job.py <<'JOB'
import sys
import numpy as np
import tensorflow as tf
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Dense(64, activation="tanh"), layers.Dropout(0.3), layers.Dense(1)])
model.compile("adam", "mse")
x = np.random.randn(512, 32).astype("float32")
model.fit(x, x.sum(1), epochs=2, verbose=0)
np.concatenate([w.flatten() for w in model.get_weights()]).tofile(sys.argv[1])
JOB

trains() { # trains IMAGE PYTHON SCRIPT: twice the same with it, something else without and with another seed
  shared_image "$1"
  "$MLENV" run --deterministic "$1" -- "$2" "$3" first.npy 2>"$work/err"
  "$MLENV" run --deterministic "$1" -- "$2" "$3" second.npy 2>>"$work/err"
  ! grep -q 'mlenv: --deterministic' "$work/err" || fail "$1: $(cat "$work/err")"
  cmp first.npy second.npy || fail "$1: not the same weights"
  "$MLENV" run "$1" -- "$2" "$3" without.npy plain 2>"$work/err"
  if cmp -s first.npy without.npy; then fail "$1: the same weights without seeds: this test cannot fail"; fi
  "$MLENV" run --deterministic --seed 7 "$1" -- "$2" "$3" other.npy 2>"$work/err"
  if cmp -s first.npy other.npy; then fail "$1: the same weights by another seed"; fi
  note "$1: $(stat -c %s first.npy) bytes of weights, twice the same"
}

trains jax-cpu python jax_job.py
"$MLENV" --json runs show last >"$work/record"
equal "recorded" "7 true" "$(jq -r '.start.deterministic | "\(.seed) \(.variables | map(.name) | index("OMP_NUM_THREADS") != null)"' "$work/record")"
equal "the person's own variables" 0 "$(jq '.start.env | length' "$work/record")"
equal "the person's own mounts" 0 "$(jq '.start.mounts | length' "$work/record")"
python3 "$root/tests/schema/check.py" <"$work/record" >/dev/null

note "its weights, repeated from the record; other code gives others"
git init -q .
git add jax_job.py && git -c user.name=a -c user.email=a@b commit -q -m x
recorded() { "$MLENV" --json runs show last | jq -e '.code != null and .host != null' >/dev/null; }
"$MLENV" run --deterministic --outputs weights.npy jax-cpu -- python jax_job.py weights.npy 2>"$work/err"
wait_until 30 recorded
id=$("$MLENV" --json runs show last | jq -r .start.id)
cmp first.npy weights.npy || fail "jax-cpu: not the same weights in the run that is to be repeated"
"$MLENV" --json reproduce "$id" >"$work/answer" 2>"$work/err" || fail "not reproduced: $(cat "$work/answer" "$work/err")"
equal "reproduced" "same present same weights.npy" "$(jq -r '"\(.result) \(.code) \(.files[0].what) \(.files[0].path)"' "$work/answer")"
sed -i 's/w - 0.1 \* step/w - 0.2 * step/' jax_job.py
ends_with 3 "$MLENV" --json reproduce --with-present-code "$id"
# The header of the file, 128 bytes, is the same.
equal "a change in the code" "differs present-changed true" \
  "$(jq -r '"\(.result) \(.code) \(.files[0].recorded_bytes == .files[0].found_bytes and .files[0].first_difference >= 128)"' "$work/out")"
git checkout -q jax_job.py

note "variables: over the image's, under the person's"
run() { "$MLENV" run --deterministic jax-cpu "$@"; }
# shellcheck disable=SC2016  # for the shell inside
equal "variables" "0 2 a:b --x --xla_gpu_deterministic_ops=true" \
  "$(run -e OMP_NUM_THREADS=2 -e PYTHONPATH=a:b -e XLA_FLAGS=--x -- sh -c 'echo $PYTHONHASHSEED $OMP_NUM_THREADS ${PYTHONPATH#*:} $XLA_FLAGS')"

note "the layer hides no sitecustomize, and costs nothing where nothing is imported"
mkdir lib
echo 'theirs = __file__' >lib/sitecustomize.py
equal "theirs" "/workspace/lib/sitecustomize.py True" \
  "$(run -e PYTHONPATH=/workspace/lib -w /workspace -- python -c 'import sitecustomize, sys; print(sitecustomize.theirs, "random" not in sys.modules)')"
echo 'raise ValueError("theirs fails")' >lib/sitecustomize.py
equal "theirs fails" fine "$(run -e PYTHONPATH=/workspace/lib -w /workspace -- python -c 'print("fine")' 2>"$work/err")"
grep -q 'theirs fails' "$work/err" || fail "not told: $(cat "$work/err")"
equal "isolated" fine "$(run -- python -I -c 'print("fine")')"

note "a library that is not what it should be is told of, and used"
mkdir -p fake
echo 'version = 1' >fake/torch.py
equal "a torch of nothing" 1 "$(run -e PYTHONPATH=/workspace/fake -w /workspace -- python -c 'import torch; print(torch.version)' 2>"$work/err")"
grep -q 'mlenv: --deterministic: torch: AttributeError' "$work/err" || fail "not told: $(cat "$work/err")"
echo 'raise ImportError("broken")' >fake/torch.py
equal "a torch that fails" broken "$(run -e PYTHONPATH=/workspace/fake -w /workspace -- python -c '
try:
    import torch
except ImportError as error:
    print(error)')"
equal "a seed of the program's own stays" 0.13436424411240122 \
  "$(run -- python -c 'import random; random.seed(1); import numpy, jax; print(random.random())')"

failing_with usage "$MLENV" --json run --seed 1 jax-cpu -- true

[ "$MLENV_TEST_LONG" = 1 ] || exit 0
trains debian-pytorch python3 torch_job.py
trains tensorflow-cpu python tensorflow_job.py
