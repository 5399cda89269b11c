# exit: 1
mlenv build nothing.yaml
