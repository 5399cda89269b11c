#!/usr/bin/env python3
"""The verdict table's cells, derived from the rules as the documents of rules.tsv state them, with
tables of its own; nothing of mlenv's code is asked. `derive.py` writes expected.tsv; check.py holds
that file, and the cells of reports.tsv, against what this derives.

A cell is the verdict and three sets: findings that must be there (`a|b`: one of them), findings
that may be there besides (where the documents leave open whether a rule applies; `*`: whatever
else), and notes that must be there."""
import pathlib
import re

import make

HERE = pathlib.Path(__file__).parent
UNKNOWN = make.UNKNOWN

# CUDA release notes, driver versions: Linux driver that a toolkit's first release ships.
OWN_DRIVER = {
    "11.0": "450.51.05", "11.1": "455.23", "11.2": "460.27.03", "11.3": "465.19.01",
    "11.4": "470.42.01", "11.5": "495.29.05", "11.6": "510.39.01", "11.7": "515.43.04",
    "11.8": "520.61.05", "12.0": "525.60.13", "12.1": "530.30.02", "12.2": "535.54.03",
    "12.3": "545.23.06", "12.4": "550.54.14", "12.5": "555.42.02", "12.6": "560.28.03",
    "12.8": "570.26", "12.9": "575.51.03", "13.0": "580.65.06", "13.1": "590.44.01",
    "13.2": "595.45.04", "13.3": "610.43.02", "13.4": "615.71.09", "13.5": "620.70.06",
}  # fmt: skip
# CUDA compatibility guide: floors of minor version compatibility.
FLOOR = {"11": "450.80.02", "12": "525.60.13", "13": "580"}
# The same guide: forward compatibility is for data-centre GPUs; GeForce is none of them.
DATA_CENTRE = re.compile(r"Tesla|[ABHL]\d+|GB200|GH200|L40S|[BH][23]00")

REFUSED = "forward-compatibility-refused"

BLOCKS = """driver-too-old ptx-too-new forward-compatibility-refused driver-mismatch
driver-not-loaded device-nodes-missing cuda-init-fails requirement-unmet driver-below-recipe
no-device-code xla-too-old recipe-gpus fabric-manager-missing architecture-differs cpu-instructions
kernel-too-old namespaces-forbidden""".split()
RISKS = """cdi-missing gpus-after-daemon-reload library-missing import-fails symbol-version-missing
two-cuda-runtimes shared-memory-small memlock-low open-files-low user-without-name disk-space
host-name-loopback interface-choice nccl-differs""".split()
SLOWS = "ptx-only no-gpu cpu-only-framework gpudirect-missing".split()


def version(text):
    return tuple(map(int, re.findall(r"\d+", text)))


def at_least(have, want):
    have, want = version(have), version(want)
    size = max(len(have), len(want))
    return have + (0,) * (size - len(have)) >= want + (0,) * (size - len(want))


class Cell:
    def __init__(self):
        self.must, self.may, self.notes, self.open = set(), set(), set(), False
        self.any = False  # whatever else is found is not looked at
        self.no_gpu_blocks = False

    def severity(self, rule):
        rule = rule.split("|")[0]
        if rule in BLOCKS or (rule == "no-gpu" and self.no_gpu_blocks):
            return "blocks"
        return "risks" if rule in RISKS else "slows"

    def verdict(self):
        found = {self.severity(rule) for rule in self.must}
        if "blocks" in found:
            return "blocks"
        if self.open:
            return "unknown"
        return "risks" if "risks" in found else "slows" if "slows" in found else "runs"


def covers(code, capability):
    """CUDA programming guide, binary and PTX compatibility: "machine", "ptx" or None."""
    major, minor = version(capability)
    ptx = False
    for one in code:
        kind, number = one.split("_")
        if not number.isdigit():
            continue  # sm_90a: that architecture alone; the table has none
        has = (int(number[:-1]), int(number[-1]))
        if kind == "sm" and has[0] == major and has[1] <= minor:
            return "machine"
        ptx = ptx or (kind == "compute" and has <= (major, minor))
    return "ptx" if ptx else None


def userland(cell, host, image):
    kernel = host["system"]["kernel"]
    if kernel != UNKNOWN and not at_least(kernel.split("-")[0], image.get("least_kernel", "3.2.0")):
        cell.must.add("kernel-too-old")
    flags = host["cpu"]["flags"]
    for need in image.get("cpu", []):
        if flags == UNKNOWN:
            cell.open = True
        elif not set(need["flags"]) <= set(flags):
            cell.must.add("cpu-instructions")
    if len({version(one["version"])[:2] for one in image.get("cuda_runtimes", [])}) > 1:
        cell.must.add("two-cuda-runtimes")
    if any(not one["from_driver"] for one in image.get("missing_libraries", [])):
        cell.must.add("library-missing")
    if image.get("missing_versions"):
        cell.must.add("symbol-version-missing")
    if image.get("waste"):
        cell.notes.add("wasted-bytes")


def low(most, least):
    return most != UNKNOWN and most["most"] is not None and most["most"] < least


def own_host(cell, host, image):
    if host["isolation"]["sandbox"] is False:
        cell.must.add("namespaces-forbidden")
    # Both are about data loaders, which are frameworks'; what others do is not told.
    loaders = cell.must if image.get("frameworks") else cell.may
    if host["storage"]["shared_memory"]["size_bytes"] == 64 << 20:  # Docker's default
        loaders.add("shared-memory-small")
    if low(host["limits"]["open_files_hard"], 1024):
        loaders.add("open-files-low")
    size = image["unpacked_bytes"] + image.get("packed_bytes", 0)  # docs/store.md: both are kept
    if host["storage"]["store"]["free_bytes"] < size:
        cell.must.add("disk-space")
    if image.get("user"):  # a number of the image's own that its /etc/passwd lacks
        cell.must.add("user-without-name")
    if host["system"]["user_id"] not in (0, 1000):  # mlenv shows that user as root (docs/run.md)
        cell.may.add("user-without-name")
    if host["network"]["rdma"]:
        nccl = cell.must if image.get("nccl") else cell.may
        # "memlock too low for InfiniBand" is NCCL's failure, which works on GPUs alone.
        if image.get("nccl") and low(host["limits"]["memlock_hard_bytes"], 1 << 30):
            (cell.must if host["gpus"] else cell.may).add("memlock-low")
        if host["nvidia"]["peermem"] is False and host["nvidia"]["dma_buf"] is False:
            nccl.add("gpudirect-missing")


def gpu_is_there(host):
    gpus, bus = host["gpus"], host["nvidia"]["pci_devices"]
    if (gpus and gpus != UNKNOWN) or (bus and bus != UNKNOWN):
        return True
    return None if UNKNOWN in (gpus, bus) else False


def state_of_driver(cell, nvidia):
    """What keeps the driver from working at all, whatever its version."""
    explained = set()
    if nvidia["mismatch"] is True:
        cell.must.add("driver-mismatch")
        explained.add(803)
    if nvidia["device_nodes"] is False:
        cell.must.add("device-nodes-missing")
    if nvidia["nvswitch"] is True and nvidia["fabric_manager"] is False:
        cell.must.add("fabric-manager-missing")
        explained.add(802)
    status = nvidia["cuda_status"]
    if status == UNKNOWN:
        return  # it only adds what the other rules do not explain
    if status and nvidia["device_nodes"] is False:
        cell.may.add("cuda-init-fails")
    elif status and status not in explained:
        cell.must.add("cuda-init-fails")
        if status == 802 and nvidia["fabric_manager"] == UNKNOWN:
            cell.may.add("fabric-manager-missing")


def cuda_of(nvidia, driver):
    """The CUDA version that the driver knows; each branch came with one toolkit."""
    told = nvidia["cuda_version"]
    return make.CUDA_OF_BRANCH[version(driver)[0]] if told == UNKNOWN else told


def driver_rules(cell, host, image, driver, toolkit):
    """Rules 1 to 4. Returns whether the driver knows the toolkit's PTX; None where the image does
    not get that far."""
    nvidia, gpus = host["nvidia"], host["gpus"]
    windows = host["system"]["wsl"]
    if windows:  # the branch numbers are another system's: compare CUDA versions
        first = at_least(nvidia["cuda_version"], toolkit)
        second = version(nvidia["cuda_version"])[0] == version(toolkit)[0]
    else:
        first = at_least(driver, OWN_DRIVER[toolkit])
        second = at_least(driver, FLOOR[toolkit.split(".")[0]])
    cuda = cuda_of(nvidia, driver)
    for library in image.get("forward_compatibility", []):
        if at_least(cuda, library["cuda_version"]) and (first or second):
            continue  # the host's own libcuda is as new
        models = [] if gpus == UNKNOWN else [gpu["name"] for gpu in gpus]
        served = all(DATA_CENTRE.search(name) and "RTX" not in name for name in models)
        listed = driver.split(".")[0] in library["drivers"]
        if not second and not (served and listed):
            cell.must.add(REFUSED + "|driver-too-old")
            return None
        if not served:
            cell.must.add(REFUSED)
            return None
        if not listed:  # left alone, so that rule 2 holds; or taken all the same: error 803
            cell.may.add(REFUSED)
            cell.notes.add("minor-version-compatibility")
            return False
        if not second:
            cell.notes.add("forward-compatibility")
        return True
    if first:
        return True
    if second:
        cell.notes.add("minor-version-compatibility")
        return False
    cell.must.add("driver-too-old")
    return None


def toolkit_rules(cell, gpus, toolkit):
    """CUDA release notes: the last toolkit for 5.0 to 7.0 is 12.9. What is made with a newer one,
    of which the image holds no device code yet, has none for these GPUs."""
    if gpus == UNKNOWN or any(gpu["compute_capability"] == UNKNOWN for gpu in gpus):
        cell.open = True
    elif toolkit[0] >= 13 and any(not at_least(gpu["compute_capability"], "7.5") for gpu in gpus):
        cell.must.add("no-device-code")


# JAX and TensorFlow make kernels while they run. JAX: 0.4.38 is the first with a compiler for
# Blackwell. TensorFlow: no wheel up to 2.21 has one (reports.tsv).
FIRST_FOR_BLACKWELL = {"jax": "0.4.38", "tensorflow": "2.22"}


def compiles_for(image, capability):
    if not at_least(capability, "10.0"):
        return True
    return all(at_least(one["version"], FIRST_FOR_BLACKWELL.get(one["name"], "0"))
               for one in image.get("frameworks", []))  # fmt: skip


def code_rules(cell, host, image, knows_ptx, driver_known):
    gpus = host["gpus"]
    for library in image.get("device_code", []):
        if not library["decides"]:
            continue
        if gpus == UNKNOWN or any(gpu["compute_capability"] == UNKNOWN for gpu in gpus):
            cell.open = True
            continue
        for gpu in gpus:
            how = covers(library["code"], gpu["compute_capability"])
            if how == "ptx" and not compiles_for(image, gpu["compute_capability"]):
                cell.must.add("xla-too-old")
                if knows_ptx is False and driver_known:
                    cell.must.add("ptx-too-new")
                elif not knows_ptx:
                    cell.may.add("ptx-too-new")
                cell.open = cell.open or not driver_known
                continue
            if how is None:
                cell.must.add("no-device-code")
            elif how == "ptx" and not driver_known:
                cell.open = True
                cell.may |= {"ptx-only", "ptx-too-new"}
            elif how == "ptx" and knows_ptx is None:
                cell.may |= {"ptx-only", "ptx-too-new"}
            elif how == "ptx":
                cell.must.add("ptx-only" if knows_ptx else "ptx-too-new")


def requirement(cell, host, image, driver):
    """NVIDIA_REQUIRE_*: a space is OR, a comma is AND, several variables are ANDed."""
    wanted = [text for name, text in image.get("environment", {}).items()
              if name.startswith("NVIDIA_REQUIRE_")]  # fmt: skip
    have = {"cuda": cuda_of(host["nvidia"], driver), "driver": driver}
    if host["gpus"] != UNKNOWN:
        name = host["gpus"][0]["name"]
        geforce = "GeForce" in name  # NVML: `geforce`, since some driver `geforcertx` for these
        have["brand"] = {"geforce"} if geforce else {"tesla", "nvidia", "nvidiartx"}
        have["either"] = {"geforce", "geforcertx"} if geforce and "RTX" in name else set()
        have["arch"] = host["gpus"][0]["compute_capability"]

    def holds(term):
        """Whether it does; None: not known."""
        name, operator, value = re.fullmatch(r"(\w+)(>=|<=|!=|=|<|>)(.+)", term).groups()
        own = have.get(name, UNKNOWN)
        if own == UNKNOWN:
            return None
        if name == "brand":
            return None if value in have["either"] else value in own
        if operator in (">=", "<"):
            return at_least(own, value) == (operator == ">=")
        if operator in ("<=", ">"):
            return at_least(value, own) == (operator == "<=")
        return (at_least(own, value) and at_least(value, own)) == (operator == "=")

    for text in wanted:
        answers = []
        for one in text.split():
            terms = [holds(term) for term in one.split(",")]
            answers.append(False if False in terms else None if None in terms else True)
        if None in answers and True not in answers:
            cell.open = True
        elif True not in answers:
            cell.must.add("requirement-unmet")


def recipe(cell, host, image, driver):
    oldest, promised = image.get("oldest_driver"), image.get("gpus", [])
    if oldest:
        if driver is None:
            cell.open = True
        elif not at_least(driver, oldest):
            cell.must.add("driver-below-recipe")
    if not promised:
        return
    if host["gpus"] == UNKNOWN:
        cell.open = True
        return
    capabilities = [gpu["compute_capability"] for gpu in host["gpus"]]
    if UNKNOWN in capabilities:
        cell.open = True
    elif not any("sm_" + one.replace(".", "") in promised for one in capabilities):
        # Code for sm_80 runs on 8.6 and 8.9: whether they are "among them" is open.
        near = any(covers(promised, one) == "machine" for one in capabilities)
        (cell.may if near else cell.must).add("recipe-gpus")


def engines(cell, host):
    # Apptainer (--nv) and Enroot (its hook) bring the driver's files in by themselves.
    names = set(host["containers"]["engines"]) - {"apptainer", "singularity", "enroot", "nvidia-ctk"}
    cdi = host["containers"]["cdi"]
    if names and cdi == []:
        cell.must.add("gpus-after-daemon-reload" if "docker" in names else "cdi-missing")
        if "docker" in names:
            cell.may.add("cdi-missing")


def gpu_rules(cell, host, image):
    frameworks = image.get("frameworks", [])
    there, nvidia = gpu_is_there(host), host["nvidia"]
    if frameworks and all(one["cuda"] == "cpu" for one in frameworks):
        if host["gpus"] == UNKNOWN or nvidia["device_nodes"] is False:
            cell.may |= {"cpu-only-framework"} if there else set()
        elif there:
            cell.must.add("cpu-only-framework")
        return
    if not image.get("cuda_runtimes"):
        return
    cell.no_gpu_blocks = bool(image.get("oldest_driver") or image.get("gpus"))
    if there is False:
        cell.must.add("no-gpu")
        return
    if there is None:
        cell.open = True
        return
    if host["system"]["wsl"]:
        cell.notes.add("wsl")
    if host["gpus"] != UNKNOWN and any(gpu["mig"] is True for gpu in host["gpus"]):
        cell.notes.add("mig")
    if nvidia["kernel_driver"] == "none":
        cell.must.add("driver-not-loaded")
        cell.any = True
        return
    state_of_driver(cell, nvidia)
    engines(cell, host)
    driver = next((one for one in (nvidia["user_driver"], nvidia["kernel_driver"])
                   if one != UNKNOWN), None)  # fmt: skip
    toolkit = max((version(one["version"])[:2] for one in image["cuda_runtimes"]))
    knows_ptx = None
    if driver is None:
        cell.open = True
    else:
        before, noted = set(cell.must), set(cell.notes)
        knows_ptx = driver_rules(cell, host, image, driver, ".".join(map(str, toolkit)))
        if nvidia["mismatch"] is True:  # which of the two versions counts is open
            cell.may |= cell.must - before
            cell.must, cell.notes = before, noted
        requirement(cell, host, image, driver)
    if image.get("device_code"):
        code_rules(cell, host, image, knows_ptx, driver is not None)
    else:
        toolkit_rules(cell, host["gpus"], toolkit)
    recipe(cell, host, image, driver)


def derive(name, host, image):
    cell = Cell()
    if name == "unknown-all":
        cell.open = cell.any = True
        return cell
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[image.get("architecture", "amd64")]
    if host["system"]["architecture"] != machine:
        cell.must.add("architecture-differs")
        cell.any = True
        return cell
    userland(cell, host, image)
    own_host(cell, host, image)
    gpu_rules(cell, host, image)
    return cell


def row(host, image, cell):
    may = ["*"] if cell.any else sorted(cell.may - cell.must)
    lists = (sorted(cell.must), may, sorted(cell.notes))
    return "\t".join([host, image, cell.verdict(), *(" ".join(one) or "-" for one in lists)])


def table():
    images = make.load("images.toml")
    lines = ["host\timage\tverdict\tfindings\tmay\tnotes"]
    for name, entry in make.load("hosts.toml").items():
        host = make.host_of(entry)
        for image in images:
            lines.append(row(name, image, derive(name, host, images[image])))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "expected.tsv").write_text(table())
