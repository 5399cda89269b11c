# exit: 0
tell() { "$@" || echo "exit $?"; }
tell mlenv --json lock nothing.yaml
tell mlenv --json lock bad.yaml
tell mlenv --json add six --recipe layout.yaml
tell mlenv --json remove six --recipe bare.yaml
tell mlenv --json build files.yaml
chmod 000 secret.yaml
if [ "$(id -u)" = 0 ]; then run="setpriv --reuid=65534 --clear-groups --inh-caps=-all"; chmod 755 .. . ; fi
tell $run mlenv --json lock secret.yaml
truncate -s 6G large.yaml
(ulimit -v 3000000 && tell mlenv --json lock large.yaml)
