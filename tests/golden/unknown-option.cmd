# exit: 2
mlenv build --frobnicate recipe.yaml
