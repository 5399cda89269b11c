# exit: 0
for name in alias values cuda; do
  mlenv lock "$name.yaml" || echo "$name: exit $?"
done
