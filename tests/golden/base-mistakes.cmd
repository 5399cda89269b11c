# exit: 0
for name in no-host upper scheme nothing keys absent no-archive; do
  mlenv lock "$name.yaml" || echo "$name: exit $?"
done
