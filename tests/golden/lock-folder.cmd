# exit: 2
mkdir recipe.lock other.built folder
cp recipe.yaml folder
mlenv lock recipe.yaml || echo "exit $?"
mlenv build --locked other.yaml || echo "exit $?"
mlenv lock . || echo "exit $?"
mlenv lock folder || echo "exit $?"
mlenv lock recipe.lock || echo "exit $?"
mlenv lock ""
