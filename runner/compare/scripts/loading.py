# Loading data as training does: files of the folder `samples`, in an order of chance, read whole. Files for
# as long as it takes, not so many rounds: where each is a round trip, a round of all would take minutes.
import itertools
import os
import random
import time

SECONDS = 1.0
folder = "samples"
names = sorted(os.listdir(folder))
random.Random(0).shuffle(names)


def read_for(seconds, names):
    begun = time.perf_counter()
    for count, name in enumerate(names, 1):
        with open(os.path.join(folder, name), "rb") as file:
            file.read()
        gone = time.perf_counter() - begun
        if gone >= seconds:
            return count / gone
    return count / gone


read_for(SECONDS, names)  # each once, where that is quick
print("mlenv-compare value data.load", read_for(SECONDS, itertools.cycle(names)), flush=True)
