# exit: 0
tell() { "$@" || echo "exit $?"; }
tell mlenv --json build edited.yaml
tell mlenv --json diff works.lock newer.lock
tell mlenv --json build --locked outdated.yaml
tell mlenv --json lock --locked unlocked.yaml
tell mlenv --json diff works.lock unlocked.yaml
tell mlenv --json diff works.lock arm.lock
tell mlenv --json build --locked recipe.yaml
tell mlenv --json build merged.yaml
PATH=/nowhere tell "$(command -v mlenv)" --json lock more.yaml
PATH=/nowhere tell "$(command -v mlenv)" --json lock without-uv.yaml
