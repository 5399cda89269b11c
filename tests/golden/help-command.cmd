# exit: 2
mlenv help >general; mlenv --help | diff -B - general; mlenv help store verify; mlenv help biuld
