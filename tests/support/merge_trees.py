"""merge_trees.py TARGET TREE…: the trees over one another, the last on top, as hard links: what an
overlay of them shows. Whiteouts are not needed here and not understood."""
import os
import sys


def merge(source, target):
    os.makedirs(target, exist_ok=True)
    for entry in os.scandir(source):
        place = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if os.path.lexists(place) and (os.path.islink(place) or not os.path.isdir(place)):
                os.unlink(place)
            merge(entry.path, place)
            continue
        if os.path.lexists(place):
            os.unlink(place)
        os.link(entry.path, place, follow_symlinks=False)


for tree in sorted(sys.argv[2:], key=lambda path: int(os.path.basename(path))):
    merge(os.path.realpath(tree), sys.argv[1])
