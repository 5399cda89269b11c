# exit: 0
tell() { echo "\$ $*"; "$@" || echo "exit $?"; }
tell mlenv check torch.json --host hosts/h100.json
tell mlenv check torch.json --host hosts/v100.json
tell mlenv check torch.json --host hosts/a100-old.json --strict
tell mlenv check torch.json --host hosts/plain.json --gpus 2 --nodes 2
tell mlenv check torch.json --host hosts/h100.json --gpus 8
tell mlenv check --host hosts/h100.json --user 1000 --shm-size 64m
tell mlenv check recipe.yaml --host hosts/plain.json
tell mlenv check torch.json --host hosts/v100.json --markdown
tell mlenv --json check torch.json --host hosts/a100-old.json
