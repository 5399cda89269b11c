# exit: 2
mlenv ls; mlenv rmi x; mlenv ps; mlenv exec x ls; mlenv rn
