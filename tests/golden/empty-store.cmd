# exit: 0
mlenv images && mlenv --json images && mlenv store verify
