# exit: 0
tell() { "$@" || echo "exit $?"; }
tell mlenv --json build --platform linux/riscv64 recipe.yaml
tell mlenv --json diff --platform linux/riscv64 recipe.lock recipe.lock
tell mlenv --json lock --locked recipe.yaml
