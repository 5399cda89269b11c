# exit: 2
mlenv lock recipe.yaml
