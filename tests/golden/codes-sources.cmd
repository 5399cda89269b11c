# exit: 0
tell() { env MLENV_DEBIAN_SOURCES="$1" mlenv --json lock recipe.yaml || echo "exit $?"; }
tell "$PWD/none.sources"
tell "$PWD/keyless.sources"
