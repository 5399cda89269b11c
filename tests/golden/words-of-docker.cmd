# exit: 2
mlenv ls; mlenv rmi x; mlenv rn
