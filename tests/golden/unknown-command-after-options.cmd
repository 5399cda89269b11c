# exit: 2
mlenv -q buld; mlenv --color never buld; mlenv store verfy; mlenv store gc; mlenv --json buld
