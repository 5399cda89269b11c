# exit: 0
mlenv init --from environment.yml --recipe vision.yaml && cat vision.yaml
mlenv --json init --from environment.yml --recipe again.yaml | sed 's/"driver":[^,]*/"driver":X/'
