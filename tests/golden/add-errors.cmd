# exit: 0
tell() { echo "exit $?"; echo "--" >&2; }
mlenv add six num=1; tell
mlenv add pytorch; tell
mlenv add ./six.whl; tell
mlenv add --system Git; tell
mlenv add --system git=old; tell
mlenv add; tell
mlenv add 'both>2'; tell
mlenv add six --recipe none.yaml; tell
mlenv add six --recipe bad.yaml; tell
mlenv add six --recipe layout.yaml; tell
mlenv add IDNA --system git; tell
mlenv add IDNA; tell
mlenv --json add idna; tell
mlenv remove idn; tell
mlenv remove idna nothere; tell
mlenv remove git; tell
mlenv remove jax; tell
mlenv remove idna==3; tell
mlenv remove --system git=1; tell
mlenv remove idna --recipe cuda.yaml; tell
cmp recipe.yaml same.yaml && ls
