# exit: 0
tell() { echo "\$ $*"; "$@" || echo "exit $?"; }
tell mlenv explain
tell mlenv explain requirement-unmet
tell mlenv --json explain wsl
tell mlenv explain driver-to-old
tell mlenv --json explain xyz
