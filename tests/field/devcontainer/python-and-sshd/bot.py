print("on")
