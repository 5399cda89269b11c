# exit: 3
mlenv lock recipe.yaml
