# exit: 0
mlenv pull --help
