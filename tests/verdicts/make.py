#!/usr/bin/env python3
"""Writes hosts/*.json (mlenv.facts/1) of hosts.toml and images/*.json (mlenv.image-facts/1) of
images.toml; with --check it only says which of them are not what it would write."""
import copy
import json
import pathlib
import sys
import tomllib

HERE = pathlib.Path(__file__).parent
GIB = 1 << 30
UNKNOWN = "unknown"

# Branch -> CUDA version that a driver of it reports (nvidia-smi).
CUDA_OF_BRANCH = {
    384: "9.0", 450: "11.0", 455: "11.1", 460: "11.2", 465: "11.3", 470: "11.4", 495: "11.5",
    510: "11.6", 515: "11.7", 520: "11.8", 525: "12.0", 530: "12.1", 535: "12.2", 540: "12.6",
    545: "12.3", 550: "12.4", 551: "12.4", 555: "12.5", 560: "12.6", 565: "12.7", 570: "12.8",
    575: "12.9", 580: "13.0", 581: "13.0", 590: "13.1", 595: "13.2", 610: "13.3", 615: "13.4",
    620: "13.5",
}  # fmt: skip

# Model -> NVML's name, compute capability, GiB, whether a board of eight has NVSwitches.
MODELS = {
    "TITANX": ("NVIDIA GeForce GTX TITAN X", "5.2", 12, False),
    "P100": ("Tesla P100-PCIE-16GB", "6.0", 16, False),
    "V100": ("Tesla V100-SXM2-32GB", "7.0", 32, False),
    "T4": ("Tesla T4", "7.5", 15, False),
    "A100": ("NVIDIA A100-SXM4-80GB", "8.0", 80, True),
    "A100-NOSWITCH": ("NVIDIA A100-SXM-64GB", "8.0", 64, False),
    "A100-PCIE": ("NVIDIA A100 80GB PCIe", "8.0", 80, False),
    "A10": ("NVIDIA A10", "8.6", 23, False),
    "RTX3050": ("NVIDIA GeForce RTX 3050 Laptop GPU", "8.6", 4, False),
    "RTX3060": ("NVIDIA GeForce RTX 3060", "8.6", 12, False),
    "RTX3090": ("NVIDIA GeForce RTX 3090", "8.6", 24, False),
    "ORIN": ("Orin", "8.7", 62, False),
    "L4": ("NVIDIA L4", "8.9", 23, False),
    "L40S": ("NVIDIA L40S", "8.9", 45, False),
    "RTX4090": ("NVIDIA GeForce RTX 4090", "8.9", 24, False),
    "H100": ("NVIDIA H100 80GB HBM3", "9.0", 80, True),
    "H100-PCIE": ("NVIDIA H100 PCIe", "9.0", 80, False),
    "H200": ("NVIDIA H200", "9.0", 141, True),
    "GH200": ("NVIDIA GH200 480GB", "9.0", 96, False),
    "B200": ("NVIDIA B200", "10.0", 180, True),
    "GB200": ("NVIDIA GB200", "10.0", 186, False),
    "B300": ("NVIDIA B300 SXM6 AC", "10.3", 270, True),
    "THOR": ("NVIDIA Thor", "11.0", 122, False),
    "RTX5060": ("NVIDIA GeForce RTX 5060 Laptop GPU", "12.0", 8, False),
    "RTX5090": ("NVIDIA GeForce RTX 5090", "12.0", 32, False),
    "RTXPRO6000": ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", 96, False),
    "GB10": ("NVIDIA GB10", "12.1", 120, False),
}

V4_FLAGS = """aes avx avx2 avx512bw avx512cd avx512dq avx512f avx512vl bmi1 bmi2 f16c fma pclmulqdq
popcnt sse4_1 sse4_2 ssse3""".split()


def limit(most):
    return {"most": most}


def interface(name, kind, addresses, speed=None):
    return {"name": name, "kind": kind, "state": "up", "speed_mbps": speed, "mtu_bytes": 1500,
            "addresses": addresses}  # fmt: skip


# What a host is where its entry says nothing else.
BASE = {
    "system": {"distribution": "ubuntu", "distribution_version": "22.04",
               "distribution_codename": UNKNOWN, "distribution_title": UNKNOWN,
               "kernel": "5.15.0-130-generic", "architecture": "x86_64", "wsl": False,
               "container": "none", "user_id": 1000},
    "cpu": {"model": "AMD EPYC 9354 32-Core Processor", "processors": 64, "usable": 64,
            "cores": 32, "sockets": 1, "level": "x86-64-v4", "flags": V4_FLAGS,
            "limit_millicpus": limit(None)},
    "memory": {"total_bytes": 256 * GIB, "available_bytes": 240 * GIB, "swap_bytes": 0,
               "limit_bytes": limit(None), "numa": []},
    "storage": {
        "store": {"path": "/var/lib/mlenv", "mount_point": "/", "type": "ext4",
                  "read_only": False, "size_bytes": 2000 * GIB, "free_bytes": 1000 * GIB},
        "temporary": {"path": "/tmp", "mount_point": "/", "type": "ext4", "read_only": False,
                      "size_bytes": 2000 * GIB, "free_bytes": 1000 * GIB},
        "shared_memory": {"path": "/dev/shm", "mount_point": "/dev/shm", "type": "tmpfs",
                          "read_only": False, "size_bytes": 128 * GIB, "free_bytes": 128 * GIB}},
    "limits": {"memlock_soft_bytes": limit(None), "memlock_hard_bytes": limit(None),
               "open_files_soft": limit(1048576), "open_files_hard": limit(1048576)},
    "isolation": {"cgroup_version": "v2", "cgroup_controllers": ["cpu", "io", "memory", "pids"],
                  "max_user_namespaces": 1030000, "unprivileged_user_namespaces": True,
                  "apparmor_restricts_namespaces": False, "apparmor_profile": "unconfined",
                  "selinux": "disabled", "seccomp": "disabled", "no_new_privileges": False,
                  "sandbox": True},
    "containers": {"engines": ["docker"], "cdi": []},
    "nvidia": {"kernel_driver": "none", "user_driver": UNKNOWN, "mismatch": UNKNOWN,
               "open_module": UNKNOWN, "cuda_version": UNKNOWN, "cuda_status": UNKNOWN,
               "pci_devices": [], "device_nodes": False, "nvswitch": False,
               "fabric_manager": False, "persistence_daemon": False, "peermem": False,
               "dma_buf": UNKNOWN},
    "gpus": [],
    "gpu_paths": [],
    "network": {"interfaces": [interface("eth0", "physical", ["192.0.2.17/24"], 10000),
                               interface("lo", "loopback", ["127.0.0.1/8"])],
                "rdma": [], "host_name": "node17", "host_addresses": ["192.0.2.17"],
                "host_is_loopback": False},
    "time": {"synchronised": True, "services": ["chronyd"], "clock_source": "tsc"},
}  # fmt: skip

# What entries share: `like`.
PROFILES = {
    "arm64": {"system.architecture": "aarch64", "cpu.model": "ARM Neoverse-V2",
              "cpu.level": UNKNOWN, "cpu.flags": []},
    "old-cpu": {"cpu.level": "x86-64-v2", "cpu.flags": ["popcnt", "sse4_1", "sse4_2", "ssse3"]},
    "centos7": {"system.distribution": "centos", "system.distribution_version": "7",
                "system.kernel": "3.10.0-1160.71.1.el7.x86_64", "isolation.cgroup_version": "v1"},
    "in-docker": {"system.container": "docker", "system.user_id": 0, "containers.engines": [],
                  "storage.shared_memory.size_bytes": 64 << 20,
                  "nvidia.fabric_manager": UNKNOWN, "nvidia.persistence_daemon": UNKNOWN,
                  "time.services": UNKNOWN},
    "wsl": {"system.wsl": True, "system.kernel": "5.15.167.4-microsoft-standard-WSL2",
            "nvidia.kernel_driver": UNKNOWN, "nvidia.mismatch": UNKNOWN,
            "nvidia.open_module": UNKNOWN, "nvidia.pci_devices": []},
    "no-driver": {"nvidia.kernel_driver": "none", "nvidia.user_driver": UNKNOWN,
                  "nvidia.cuda_version": UNKNOWN, "nvidia.cuda_status": UNKNOWN,
                  "nvidia.mismatch": UNKNOWN, "nvidia.open_module": UNKNOWN,
                  "nvidia.device_nodes": False, "nvidia.dma_buf": UNKNOWN, "gpus": UNKNOWN,
                  "gpu_paths": UNKNOWN, "containers.cdi": []},
    "two-networks": {"network.interfaces": [
        interface("docker0", "virtual", ["172.17.0.1/16"]),
        interface("eth0", "physical", ["192.0.2.17/24"], 1000),
        interface("eth1", "physical", ["198.51.100.17/24"], 100000),
        interface("lo", "loopback", ["127.0.0.1/8"])]},
    "infiniband": {"network.rdma": [
        {"device": "mlx5_0", "port": 1, "link": "InfiniBand", "state": "ACTIVE",
         "interface": "ib0", "rate_gbps": 400.0}]},
}  # fmt: skip


def gpus_of(entry):
    """The models of `gpu = "2 A10, T4"`, one by one."""
    found = []
    for part in filter(None, entry.get("gpu", "").split(", ")):
        count, _, model = part.rpartition(" ")
        found += [model] * int(count or 1)
    return found


def put_gpus(host, models, driver):
    switches = any(MODELS[model][3] for model in models)
    branch = int(driver.split(".")[0]) if driver else 0
    addresses = [f"0000:{0x10 + 8 * i:02x}:00.0" for i in range(len(models))]
    host["nvidia"] |= {
        "kernel_driver": driver or "none", "user_driver": driver or UNKNOWN, "mismatch": False,
        "open_module": branch >= 560, "cuda_version": CUDA_OF_BRANCH.get(branch, UNKNOWN),
        "cuda_status": 0, "pci_devices": addresses, "device_nodes": True, "nvswitch": switches,
        "persistence_daemon": True, "peermem": True, "dma_buf": True,
    }  # fmt: skip
    host["containers"]["cdi"] = [{"path": "/etc/cdi/nvidia.yaml", "kind": "nvidia.com/gpu",
                                  "devices": [*map(str, range(len(models))), "all"]}]  # fmt: skip
    host["containers"]["engines"] = ["docker", "nvidia-ctk"]
    for index, model in enumerate(models):
        name, capability, gib, _ = MODELS[model]
        host["gpus"].append(
            {"index": index, "name": name, "compute_capability": capability,
             "uuid": f"GPU-00000000-0000-0000-0000-{index:012}", "pci_address": addresses[index],
             "memory_bytes": gib * GIB, "mig": False, "ecc": "GeForce" not in name,
             "persistence": True, "pcie_generation": UNKNOWN, "pcie_lanes": UNKNOWN,
             "nvlinks": 18 if switches else 0})  # fmt: skip
    host["gpu_paths"] = UNKNOWN


def put(host, path, value):
    """One fact; `gpus.X` sets it for each GPU."""
    *folders, name = path.split(".")
    if folders == ["gpus"]:
        for gpu in host["gpus"]:
            gpu[name] = value
        return
    if folders and folders[0] == "limits":
        value = limit(value)
    for folder in folders:
        host = host[folder]
    assert name in host, path
    host[name] = value


def host_of(entry):
    host = copy.deepcopy(BASE)
    if models := gpus_of(entry):
        put_gpus(host, models, entry.get("driver"))
    settings = {}
    for profile in entry.get("like", []):
        settings |= PROFILES[profile]
    for path, value in (settings | entry.get("set", {})).items():
        put(host, path, value)
    return host


# What is no fact in the members of a list: it holds for certain (runner/facts/facts.hpp).
CERTAIN = {"cdi": {"path"}, "gpus": {"index"}, "gpu_paths": {"from", "to"},
           "interfaces": {"name"}, "rdma": {"device", "port"}}  # fmt: skip
GROUPS = {"system", "cpu", "memory", "storage", "limits", "isolation", "containers", "nvidia",
          "network", "time", "store", "temporary", "shared_memory"}  # fmt: skip


def engine(name):
    return {"name": name, "path": f"/usr/bin/{name}",
            "version": fact("28.2.2" if name == "docker" else "1.17.8")}  # fmt: skip


def fact(value):
    if value == UNKNOWN:
        return {"source": "not known", "value": None}
    return {"source": "verdict table", "value": value} if value is not None else fact(UNKNOWN)


def as_facts(group, certain=()):
    found = {}
    for name, value in group.items():
        if name in GROUPS:
            found[name] = as_facts(value)
        elif name in certain:
            found[name] = value
        elif name == "engines" and value != UNKNOWN:
            found[name] = fact([engine(one) for one in sorted(value)])
        elif name in CERTAIN and value != UNKNOWN:
            found[name] = fact([as_facts(one, CERTAIN[name]) for one in value])
        else:
            found[name] = fact(value)
    return found


def facts_json(host):
    return json.dumps({"schema": "mlenv.facts/1"} | as_facts(host), sort_keys=True,
                      separators=(",", ":")) + "\n"  # fmt: skip


def image_json(name, image):
    told = {"name": name, "digest": "sha256:" + f"{sum(map(ord, name)):064x}", "kind": "image",
            "architecture": "amd64", "environment": []}  # fmt: skip
    base = {"cuda_runtimes": [], "cudnn": [], "nccl": [], "frameworks": [], "device_code": [],
            "forward_compatibility": [], "least_kernel": "3.2.0", "cpu": [],
            "glibc": {"needed": "GLIBC_2.34", "needed_by": "/usr/bin/python3.11",
                      "present": "GLIBC_2.36"},
            "libstdcxx": {"needed": "GLIBCXX_3.4.30", "needed_by": "/opt/venv/lib/x.so",
                          "present": "GLIBCXX_3.4.30"},
            "missing_libraries": [], "missing_versions": [], "waste": [],
            "user_ids": ["0", "1000", "65534"], "user": "", "oldest_driver": None,
            "gpus": []}  # fmt: skip
    image = {key: value for key, value in image.items() if key != "about"}
    told |= {key: image.pop(key) for key in list(image) if key in told}
    told["environment"] = [{"name": key, "value": value}
                           for key, value in sorted(dict(told["environment"]).items())]  # fmt: skip
    facts = {key: fact(value) for key, value in (base | image).items()}
    return json.dumps({"schema": "mlenv.image-facts/1"} | told | facts, sort_keys=True,
                      separators=(",", ":")) + "\n"  # fmt: skip


def load(name):
    with open(HERE / name, "rb") as file:
        return tomllib.load(file)


def main():
    wanted = {}
    for name, entry in load("hosts.toml").items():
        host = {} if name == "unknown-all" else host_of(entry)
        wanted[HERE / "hosts" / f"{name}.json"] = facts_json(host)
    for name, entry in load("images.toml").items():
        wanted[HERE / "images" / f"{name}.json"] = image_json(name, entry)
    there = {*HERE.glob("hosts/*.json"), *HERE.glob("images/*.json")}
    if "--check" in sys.argv:
        wrong = [path for path, text in wanted.items()
                 if path not in there or path.read_text() != text]  # fmt: skip
        for path in sorted({*wrong, *(there - wanted.keys())}):
            print(f"{path.relative_to(HERE)}: not what make.py writes")
        sys.exit(bool(wrong or there - wanted.keys()))
    for path in there - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    print(f"{len(wanted)} files")


if __name__ == "__main__":
    main()
