# exit: 0
for name in item key missing tab text; do
  mlenv lock "$name.yaml" || echo "$name: exit $?"
done
