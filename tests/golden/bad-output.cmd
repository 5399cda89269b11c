# exit: 2
mlenv build --output zip:x recipe.yaml
