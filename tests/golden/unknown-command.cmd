# exit: 2
mlenv biuld recipe.yaml
