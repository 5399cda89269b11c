# exit: 0
mlenv run --help
