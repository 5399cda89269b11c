# exit: 0
mlenv help explain
