# exit: 0
for command in shell exec ps logs stop wait; do
  mlenv "$command" --help
done
