# exit: 0
tell() { "$@" || echo "exit $?"; }
tell mlenv --json init
tell mlenv init --recipe .
tell mlenv --json init --recipe new.yaml --from settings.ini
tell mlenv --json init --recipe new.yaml --from absent.txt
tell mlenv init --recipe new.yaml --from Dockerfile
tell mlenv --json init --recipe new.yaml --from environment.yml
tell mlenv init --recipe new.yaml --from pyproject.toml
tell mlenv init --recipe new.yaml --from latin1.txt
tell mlenv init --recipe new.yaml --framework 'torch=2'
tell mlenv init --recipe new.yaml --name Team/Image
ls
