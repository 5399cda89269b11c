# exit: 2
mlenv --json lock recipe.yaml
