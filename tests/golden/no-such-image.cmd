# exit: 125
mlenv run nothing -- true
