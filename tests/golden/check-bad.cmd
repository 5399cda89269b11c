# exit: 0
tell() { "$@" || echo "exit $?"; }
tell mlenv check
tell mlenv check absent.json
tell mlenv check absent.lock
tell mlenv check no-such-image
tell mlenv check torch.json --fleet nowhere
tell mlenv check torch.json --host torch.json
tell mlenv check torch.json --host hosts/h100.json --shm-size 8q
tell mlenv check torch.json --host a --fleet b
tell mlenv check torch.json eval.json --suggest
tell mlenv check torch.json --force
tell mlenv check --suggest torch.json
tell mlenv check torch.json --host hosts/h100.json --suggest --markdown
