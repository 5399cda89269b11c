# exit: 0
mlenv inspect --help
