# exit: 0
mlenv build --help
