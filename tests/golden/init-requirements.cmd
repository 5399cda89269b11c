# exit: 0
mlenv -q init --from requirements.txt --name x && sed '/^# As on/d; /^base:/d; s/^python: .*/python/' recipe.yaml
