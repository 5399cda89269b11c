# exit: 0
for command in shell exec ps logs stop wait watch; do
  mlenv "$command" --help
done
