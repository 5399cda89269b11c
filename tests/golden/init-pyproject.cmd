# exit: 0
mlenv init --from pyproject.toml && cat recipe.yaml
