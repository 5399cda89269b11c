# exit: 0
# Words of other programs, and where they lead.
for word in upgrade update kill top attach df du prune history login start sweep ls list rmi install uninstall verify \
  sync create import activate freeze status results repeat undo rename bench doctor info publish download jupyter \
  commit restart version; do
  printf '%s: %s\n' "$word" "$(mlenv "$word" 2>&1 | tail -n 1)"
done
for option in -it -ti --interactive --privileged --ipc=host --entrypoint=sh --net=host --port=80 --np --nnodes=2 --sweep; do
  printf '%s: %s\n' "$option" "$(mlenv run "$option" image 2>&1 | tail -n 1)"
done
