# exit: 0
for name in recipe project names absent; do
  mlenv lock "$name.yaml" || echo "$name: exit $?"
done
