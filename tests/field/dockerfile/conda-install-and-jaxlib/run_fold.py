import haiku
