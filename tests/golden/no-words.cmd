# exit: 2
mlenv
