# exit: 2
mlenv pull HOST:5000/UPPER:tag
