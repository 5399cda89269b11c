# exit: 0
mlenv save --help
