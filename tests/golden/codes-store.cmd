# exit: 0
tell() { "$@" || echo "exit $?"; }
mkdir store && echo 99 >store/version
MLENV_STORE=$PWD/store tell mlenv --json images
