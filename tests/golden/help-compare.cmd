# exit: 0
mlenv compare --help
tell() { "$@" || echo "exit $?"; }
tell mlenv compare
tell mlenv compare small --sides bare,moon
tell mlenv compare small --rows start.usre
tell mlenv compare small --option bare=--cpus=1
tell mlenv compare small --price vm=free
tell mlenv compare --show absent.json
