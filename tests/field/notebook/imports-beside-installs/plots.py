def curve(): pass
