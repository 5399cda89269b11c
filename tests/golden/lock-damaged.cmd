# exit: 0
for name in empty cut merged twice; do
  mlenv lock "$name.yaml" || echo "exit $?"
done
