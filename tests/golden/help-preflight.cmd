# exit: 0
mlenv preflight --help
tell() { "$@" || echo "exit $?"; }
tell mlenv preflight
tell mlenv preflight --nodes 2 --engine shh
tell mlenv run --preflight debian
tell mlenv run --nodes 2 --stall-timeout soon debian -- true
