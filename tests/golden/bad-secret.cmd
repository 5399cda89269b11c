# exit: 0
export TOKEN=abc
for secret in netrc src=netrc id=a/b,src=netrc id=a,src=absent id=a,env=ABSENT id=a,src=b,env=TOKEN \
  id=a,id=b id=a,src=.; do
  mlenv build recipe.yaml --secret "$secret" || echo "$secret: exit $?"
done
mlenv build recipe.yaml --secret id=a,env=TOKEN --secret id=a,env=TOKEN || echo "twice: exit $?"
