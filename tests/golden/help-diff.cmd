# exit: 0
mlenv help diff
