# exit: 0
mlenv help check
