# exit: 0
mlenv data show
tell() { "$@" || echo "exit $?"; }
tell mlenv data update
XDG_CONFIG_HOME=$PWD tell mlenv --json data update
