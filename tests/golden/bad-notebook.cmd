# exit: 2
# What `--jupyter` cannot be given, told before anything is looked at.
mlenv run --jupyter=no-port image
mlenv run --jupyter=70000 image
mlenv run --jupyter -t image </dev/null
mlenv run --jupyter --network none image
mlenv run --jupyter image -- --port=9000
mlenv run --jupyter image -- --ServerApp.token=secret
mlenv run --jupyter image -- --ip 0.0.0.0
mlenv --json runs url nobody
