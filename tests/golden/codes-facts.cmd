# exit: 0
tell() { "$@" || echo "exit $?"; }
for file in newer damaged other absent; do
  tell mlenv --json facts $file.json
done
mlenv facts damaged.json || echo "exit $?"
