# exit: 0
tell() { "$@" || echo "exit $?"; }
tell mlenv --json lock nothing.yaml
tell mlenv --json lock bad.yaml
tell mlenv --json add six --recipe layout.yaml
tell mlenv --json remove six --recipe bare.yaml
tell mlenv --json build files.yaml
truncate -s 6G large.yaml
tell mlenv --json lock large.yaml
truncate -s 60M large.json
(ulimit -v 70000 && tell mlenv --json diff large.json large.json)
