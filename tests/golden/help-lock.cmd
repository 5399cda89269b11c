# exit: 0
mlenv lock --help
