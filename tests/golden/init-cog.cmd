# exit: 0
mlenv init --from cog.yaml && cat recipe.yaml
