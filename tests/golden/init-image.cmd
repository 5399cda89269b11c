# exit: 0
mlenv init --from Dockerfile --name x && cat recipe.yaml
