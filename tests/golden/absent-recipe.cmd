# exit: 1
mlenv build nothing.yaml; touch trian.yaml; mlenv lock train.yaml
