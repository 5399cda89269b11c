# exit: 0
mlenv export --help
mlenv export devcontainer --help
mlenv export ssh-config --help
