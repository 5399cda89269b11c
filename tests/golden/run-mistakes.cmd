# exit: 2
mlenv build recipe.yaml
