# exit: 0
mlenv init --from Dockerfile --name bert-train && cat recipe.yaml
