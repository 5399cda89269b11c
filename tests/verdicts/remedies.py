"""Whether what `mlenv check` says is to be done names a thing that helps, by the column `remedy` of
rules.tsv: texts and the words below, `|` between those of which one must hold, commas between those
that must all. Only findings that block or are a risk are looked at."""
import re

import derive
import make

# CUDA release notes: first and last toolkit that makes code for a compute capability; None: still.
TOOLKITS = {
    "3.5": (None, "11.8"), "5.0": (None, "12.9"), "5.2": (None, "12.9"), "6.0": (None, "12.9"),
    "6.1": (None, "12.9"), "7.0": (None, "12.9"), "7.5": ("10.0", None), "8.0": ("11.0", None),
    "8.6": ("11.1", None), "8.7": ("11.4", None), "8.9": ("11.8", None), "9.0": ("11.8", None),
    "10.0": ("12.8", None), "10.3": ("12.9", None), "11.0": ("13.0", None),
    "12.0": ("12.8", None), "12.1": ("12.9", None),
}  # fmt: skip


class Remedy:
    def __init__(self, finding, host, image):
        self.text, self.needed = finding["remedy"], finding["needed"]
        self.host, self.image, self.nvidia = host, image, host.get("nvidia", {})

    def toolkit(self):
        return max((one["version"] for one in self.image["cuda_runtimes"]), key=derive.version)

    def own_driver(self):
        known = (self.nvidia["kernel_driver"], self.nvidia["user_driver"])
        return next((one for one in known if one not in (make.UNKNOWN, "none")), None)

    def drivers(self):
        return re.findall(r"driver to (\d+(?:\.\d+)*)", self.text)

    def releases(self):
        return re.findall(r"CUDA (\d+(?:\.\d+)?)", self.text)

    def names_driver(self, least):
        return any(derive.at_least(one, least) for one in self.drivers())

    def capabilities(self):
        gpus = self.host["gpus"]
        return [] if gpus == make.UNKNOWN else [one["compute_capability"] for one in gpus]

    # --- the words ------------------------------------------------------------------------------
    def floor_driver(self):
        """A driver that runs the image's toolkit at least by minor-version compatibility."""
        return self.names_driver(derive.FLOOR[self.toolkit().split(".")[0]])

    def toolkit_driver(self):
        """A driver as new as the toolkit's own."""
        return self.names_driver(derive.OWN_DRIVER[".".join(self.toolkit().split(".")[:2])])

    def recipe_driver(self):
        """A driver that the recipe accepts."""
        return self.names_driver(self.image["oldest_driver"])

    def newer_driver(self):
        """A driver newer than the host's."""
        own = self.own_driver()
        return bool(self.drivers()) and not (own and any(
            derive.at_least(own, one) for one in self.drivers()))  # fmt: skip

    def same_driver(self):
        """The version of the host's own driver."""
        return self.own_driver() in self.text

    def cuda_of_driver(self):
        """If a CUDA release is named, one that the host's driver knows the major version of."""
        own = self.own_driver()
        if not self.releases() or own is None:
            return True
        told = derive.cuda_of(self.nvidia, own)
        return all(derive.at_least(told.split(".")[0], one.split(".")[0])
                   for one in self.releases())  # fmt: skip

    def a_release(self):
        """A CUDA release."""
        return bool(self.releases())

    def architecture(self):
        """The architecture of one of the host's GPUs."""
        return any(f"sm_{one.replace('.', '')}" in self.text for one in self.capabilities())

    def release_for_gpu(self):
        """If a CUDA release is named, one that makes code for one of the host's GPUs, or for an
        older minor of the same major, which runs there too."""
        def makes(release, capability):
            return any(
                (first is None or derive.at_least(release, first))
                and (last is None or derive.at_least(last, release))
                for code, (first, last) in TOOLKITS.items()
                if code.split(".")[0] == capability.split(".")[0]
                and derive.at_least(capability, code))  # fmt: skip
        return all(any(makes(one, own) for own in self.capabilities()) for one in self.releases())

    def number_needed(self):
        """A version that is needed."""
        return any(one in self.text for one in re.findall(r"\d+(?:\.\d+)+", self.needed))

    def who_needs_it(self):
        """What it is that needs something."""
        return self.needed.rpartition(" for ")[2] in self.text


WORDS = {name.replace("_", " "): word for name, word in vars(Remedy).items()
         if word.__doc__ and callable(word)}  # fmt: skip


def holds(remedy, word):
    return WORDS[word](remedy) if word in WORDS else word in remedy.text


def complaints(findings, host, image, wanted):
    """What is wrong with the remedies; `wanted`: the column, by rule."""
    wrong = []
    for one in findings:
        if one["severity"] not in ("blocks", "risks"):
            continue
        remedy = Remedy(one, host, image)
        for words in wanted[one["rule"]].split(","):
            if not any(holds(remedy, word) for word in words.split("|")):
                wrong.append(f"{one['rule']}: the remedy names no {words}: {remedy.text}")
    return wrong
