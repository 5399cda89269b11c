# exit: 125
mlenv build --explian; mlenv --verison; mlenv images --jsno --verbos; mlenv -json images; mlenv images -x; mlenv run -v /usr:/x --memory-swop image
