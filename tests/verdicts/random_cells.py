#!/usr/bin/env python3
"""usage: random_cells.py MLENV [SEED [HOSTS [IMAGES]]]

Hosts and images that nobody thought of, judged by derive.py and by `mlenv check`; prints every
difference and keeps nothing. The same seed makes the same ones."""
import json
import pathlib
import random
import sys
import tempfile

import check
import derive
import make
import remedies

DRIVERS = """450.51.05 450.51.06 450.80.02 450.248.02 455.23 460.27.03 460.106.00 465.19.01 470.42.01
470.256.02 495.29.05 510.39.01 510.108.03 515.43.04 520.61.05 525.60.13 525.147.05 530.30.02
535.54.03 535.104.05 535.274.02 545.23.06 550.54.14 550.163.01 555.42.02 560.28.03
560.35.05 565.57.01 570.26 570.86.10 570.211.01 575.51.03 575.57.08 580.65.06 580.126.09 590.44.01
590.48.01 595.45.04 595.58.03 610.43.02 615.71.09 620.70.06""".split()
ARCHITECTURES = "50 60 61 70 75 80 86 87 89 90 100 103 110 120 121".split()
SETTINGS = {
    "nvidia.device_nodes": [False], "nvidia.fabric_manager": [True, False, True, True],
    "nvidia.cuda_status": [999, 802, "unknown"], "gpus.mig": [True],
    "nvidia.cuda_version": ["unknown"], "isolation.sandbox": [False],
    "system.kernel": ["2.6.32-754.el6.x86_64", "3.2.0", "3.10.0-1160.el7.x86_64", "6.8.0-60-generic"],
    "cpu.flags": [[], ["sse4_2"], ["avx"]], "storage.store.free_bytes": [100, 3 * 10**9],
    "storage.shared_memory.size_bytes": [64 << 20], "limits.open_files_hard": [256],
    "system.architecture": ["aarch64"],
}  # fmt: skip


def a_host(dice):
    entry = {"set": {}}
    models = [name for name in make.MODELS if name not in ("ORIN", "THOR", "GB10", "RTXPRO6000")]
    if dice.random() < 0.93:
        entry["gpu"] = f"{dice.choice([1, 1, 2, 4])} {dice.choice(models)}"
        entry["driver"] = dice.choice(DRIVERS)
        entry["set"]["nvidia.fabric_manager"] = True
    for path, values in SETTINGS.items():
        if dice.random() < 0.08 and ("gpu" in entry or not path.startswith("nvidia.")):
            entry["set"][path] = dice.choice(values)
    if "cpu.flags" in entry["set"]:
        entry["set"]["cpu.level"] = "x86-64-v1"
    if dice.random() < 0.05:
        entry["like"] = ["wsl"] if "gpu" in entry else ["old-cpu"]
        for path in ("nvidia.cuda_version", "nvidia.device_nodes"):  # WSL always has them
            entry["set"].pop(path, None)
    return entry


def a_requirement(dice):
    terms = [f"cuda>={dice.choice(list(derive.OWN_DRIVER))}"]
    for _ in range(dice.randrange(4)):
        branch = int(dice.choice(DRIVERS).split(".")[0])
        brand = dice.choice(["tesla", "geforce", "geforce"])
        if brand == "tesla":  # NVML calls newer boards `nvidia`: the same for both
            terms += [f"brand={one},driver>={branch},driver<{branch + 1}"
                      for one in ("tesla", "nvidia", "nvidiartx")]  # fmt: skip
        else:
            terms.append(f"brand={brand},driver>={branch}")
    return " ".join(terms)


def an_image(dice):
    toolkit = dice.choice(list(derive.OWN_DRIVER))
    image = {"unpacked_bytes": 2 * 10**9,
             "cuda_runtimes": [{"path": "/usr/lib/libcudart.so", "version": toolkit + ".77"}],
             "frameworks": [{"name": "torch", "version": "2.9.0", "cuda": toolkit}]}  # fmt: skip
    known = dice.sample(ARCHITECTURES, dice.randrange(3, 13))
    code = [f"sm_{one}" for one in sorted(known, key=int)]
    code += [f"compute_{one}" for one in dice.sample(ARCHITECTURES, dice.choice([0, 0, 1]))]
    image["device_code"] = [{"path": "/usr/lib/libtorch_cuda.so", "code": code, "decides": True}]
    if dice.random() < 0.3:
        branches = {one.split(".")[0] for one in dice.sample(DRIVERS, 12)}
        image["forward_compatibility"] = [
            {"path": "/usr/local/cuda/compat/libcuda.so.1", "cuda_version": toolkit,
             "drivers": sorted(branches), "devices": []}]  # fmt: skip
    if dice.random() < 0.3:
        image["environment"] = {"NVIDIA_REQUIRE_CUDA": a_requirement(dice)}
        if dice.random() < 0.3:
            image["environment"]["NVIDIA_REQUIRE_OTHER"] = a_requirement(dice)
    if dice.random() < 0.2:
        image["oldest_driver"] = dice.choice(["525.60.13", "550", "580", "590"])
    if dice.random() < 0.2:
        image["gpus"] = ["sm_" + one for one in sorted(dice.sample(ARCHITECTURES, 3), key=int)]
    if dice.random() < 0.2:
        image["cpu"] = [{"who": "torch 2.9.0", "flags": ["avx"]}]
    return image


def main():
    mlenv, seed, hosts, images = (sys.argv[1:] + ["1", "200", "30"][len(sys.argv) - 2:])[:4]
    dice = random.Random(int(seed))
    entries = {f"host-{at}": a_host(dice) for at in range(int(hosts))}
    differing, usual = 0, check.severities()
    wanted = {one["rule"]: one["remedy"] for one in check.rows("rules.tsv")}
    with tempfile.TemporaryDirectory() as folder:
        check.HERE = pathlib.Path(folder)
        for part in ("hosts", "images"):
            (check.HERE / part).mkdir()
        for name, entry in entries.items():
            (check.HERE / "hosts" / f"{name}.json").write_text(make.facts_json(make.host_of(entry)))
        for at in range(int(images)):
            image = an_image(dice)
            (check.HERE / "images" / f"{at}.json").write_text(make.image_json(str(at), dict(image)))
            found = check.answers(mlenv, str(at))
            for name, entry in entries.items():
                cell = derive.derive(name, make.host_of(entry), image)
                line = derive.row(name, str(at), cell).split("\t")
                told = dict(zip(("host", "image", "verdict", "findings", "may", "notes"), line))
                wrong = check.compare(told, *found[name], usual)
                wrong += remedies.complaints(found[name][1], make.host_of(entry), image, wanted)
                if wrong:
                    differing += 1
                    print(f"{'; '.join(wrong)}\n    {entry}\n    {json.dumps(image)}")
    print(f"{int(hosts) * int(images)} cells of seed {seed}, {differing} differ")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
