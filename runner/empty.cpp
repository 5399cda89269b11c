namespace mlenv {}
