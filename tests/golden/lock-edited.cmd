# exit: 2
mlenv build --locked recipe.yaml || echo "exit $?"
mlenv lock recipe.yaml
