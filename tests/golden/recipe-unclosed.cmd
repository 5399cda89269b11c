# exit: 0
for name in bracket quote comma merged; do
  mlenv lock "$name.yaml" || echo "$name: exit $?"
done
