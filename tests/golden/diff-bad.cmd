# exit: 2
for other in nothing wroks.lock unlocked.yaml unlokced.yaml edited.lock arm.lock sha256:zz .; do
  mlenv diff works.lock "$other" || echo "exit $?"
done
mlenv diff works.lock
