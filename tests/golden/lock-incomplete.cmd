# exit: 3
mlenv build --locked recipe.yaml
