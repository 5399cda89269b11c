# exit: 0
mlenv reproduce --help
