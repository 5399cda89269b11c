# exit: 0
tell() { echo "\$ mlenv $*"; mlenv "$@" || echo "exit $?"; }
tell diff works.json crashed.json
tell diff works.json bus.json
tell diff works.json slower.json
tell diff --all works.json slower.json
tell diff works.json bare.json
tell diff works.json works.json
tell diff node17.json node18.json
tell diff works.json node18.json
tell diff works.json train.lock
tell diff bare.json train.lock
tell --json diff node17.json train.lock
tell diff node17.json absent.json
tell diff last node17.json
tell diff last~1 node17.json
tell diff 0fa4f1 node17.json
tell --json diff works.json bus.json
tell --json diff works.json works.json
