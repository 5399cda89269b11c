# exit: 0
mlenv runs --help
mlenv runs prune --help
