# exit: 2
mlenv run -v /nowhere:/x nothing -- true
