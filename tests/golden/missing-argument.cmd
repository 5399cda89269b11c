# exit: 2
mlenv push
