# exit: 0
mlenv --json store path
