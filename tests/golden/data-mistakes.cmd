# exit: 2
mlenv lock recipe.yaml || true
mlenv lock undigested.yaml
