# exit: 2
mlenv lock recipe.yaml || echo "exit $?"
mlenv lock wheel.yaml || echo "exit $?"
mlenv lock version.yaml
