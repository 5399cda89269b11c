# exit: 125
mlenv run -v /nowhere:/x nothing -- true
