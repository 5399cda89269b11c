# exit: 1
touch recipe.yaml Dockerfile; mlenv inspect sha256:zz; mlenv inspect Train; mlenv inspect train:; mlenv inspect docker://train; mlenv inspect recipe.yaml; mlenv push recipe.yaml; mlenv run ./Dockerfile; mlenv tag train sha256:abcdef; mlenv rm sha256:abcdef; mlenv rm nothing
