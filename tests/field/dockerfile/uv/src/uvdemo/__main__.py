import idna

print(idna.__name__)
