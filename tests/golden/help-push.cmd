# exit: 0
mlenv push --help
