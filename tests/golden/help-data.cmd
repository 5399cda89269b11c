# exit: 0
mlenv data --help
mlenv data update --help
