# exit: 2
mlenv build --locked recipe.yaml || echo "exit $?"
mlenv build --locked format.yaml || echo "exit $?"
mlenv build merged.yaml
