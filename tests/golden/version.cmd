# exit: 0
mlenv --version
