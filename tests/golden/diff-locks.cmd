# exit: 0
mlenv diff works.lock crashes.lock || echo "exit $?"
mlenv diff works.lock train.yaml
mlenv --json diff train.yaml works.lock
mlenv --json diff works.lock crashes.lock || echo "exit $?"
sed 's/numpy/scipy/' train.yaml >changed.yaml
cp train.lock changed.lock
mlenv diff changed.yaml crashes.lock >/dev/null || echo "exit $?"
