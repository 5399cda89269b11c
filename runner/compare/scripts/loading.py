# Loading data as training does: all files of the folder `samples`, in an order of chance, read whole.
import os
import random
import time

folder = "samples"
names = sorted(os.listdir(folder))
random.Random(0).shuffle(names)


def read_all():
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            file.read()


read_all()
begun = time.perf_counter()
rounds = 0
while rounds < 3 or time.perf_counter() - begun < 0.5:
    read_all()
    rounds += 1
seconds = time.perf_counter() - begun
print("mlenv-compare value data.load", rounds * len(names) / seconds, flush=True)
