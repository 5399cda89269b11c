# exit: 0
mlenv load --help
