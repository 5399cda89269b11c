# exit: 0
mlenv store --help
