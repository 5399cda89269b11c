# exit: 0
mlenv probe --help
tell() { "$@" || echo "exit $?"; }
tell mlenv probe --size 0
tell mlenv probe --timeout x
