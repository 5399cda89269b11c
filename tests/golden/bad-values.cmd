# exit: 2
mlenv build -j -1; mlenv build --jobs=two; mlenv --color bleu images; mlenv images --color; mlenv images extra; mlenv store; mlenv -q
