# exit: 0
tell() { echo "\$ $*"; "$@" || echo "exit $?"; }
tell mlenv check torch.json eval.json --fleet hosts
tell mlenv check torch.json eval.json --fleet hosts --markdown
tell mlenv check torch.json eval.json --host hosts/h100.json --nodes 2
