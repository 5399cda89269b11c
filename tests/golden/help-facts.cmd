# exit: 0
mlenv help facts
