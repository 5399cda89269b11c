#!/usr/bin/env python3
"""Pairs of runs that differ by one planted cause and by ten things that explain nothing.

planted_changes.py MLENV FOLDER SEEDS: for each cause and each seed, writes FOLDER/a.json and b.json
(mlenv.run/1) and asks `MLENV --json diff a.json b.json`. The first finding must be the cause's rule.
What is drawn beside it is of kinds that have rules, too: packages, variables, arguments, mounts, the
kernel, the driver of a run without GPUs.
"""

import copy
import hashlib
import json
import pathlib
import random
import subprocess
import sys

GIB = 1 << 30


def fact(value, source="test"):
    return {"value": value, "source": source}


def at_most(value):
    return fact({"most": value})


def gpu(index, name="NVIDIA H100 80GB HBM3", capability="9.0", memory=85_520_809_984):
    return {
        "index": index,
        "name": fact(name),
        "uuid": fact(f"GPU-{index:08x}-0000-0000-0000-000000000000"),
        "pci_address": fact(f"0000:{0x17 + index:02x}:00.0"),
        "compute_capability": fact(capability),
        "memory_bytes": fact(memory),
        "mig": fact(False),
        "ecc": fact(True),
        "persistence": fact(True),
        "pcie_generation": fact(5),
        "pcie_lanes": fact(16),
        "nvlinks": fact(18),
    }


def disk(path, kind, size, free):
    return {
        "path": fact(path),
        "mount_point": fact("/"),
        "type": fact(kind),
        "read_only": fact(False),
        "size_bytes": fact(size),
        "free_bytes": fact(free),
    }


def interface(name, kind, address):
    return {
        "name": name,
        "kind": fact(kind),
        "state": fact("up"),
        "speed_mbps": fact(25000 if kind == "physical" else None),
        "mtu_bytes": fact(1500),
        "addresses": fact([address]),
    }


def host():
    return {
        "system": {
            "distribution": fact("debian"),
            "distribution_version": fact("12"),
            "distribution_codename": fact("bookworm"),
            "distribution_title": fact("Debian GNU/Linux 12 (bookworm)"),
            "kernel": fact("6.1.0-41-amd64"),
            "architecture": fact("x86_64"),
            "wsl": fact(False),
            "container": fact("none"),
            "user_id": fact(1000),
        },
        "cpu": {
            "model": fact("AMD EPYC 9354 32-Core Processor"),
            "processors": fact(64),
            "usable": fact(64),
            "cores": fact(64),
            "sockets": fact(2),
            "level": fact("x86-64-v4"),
            "flags": fact(["avx", "avx2", "avx512bw", "avx512f", "avx512vl", "fma", "sse4_2"]),
            "limit_millicpus": at_most(None),
        },
        "memory": {
            "total_bytes": fact(512 * GIB),
            "available_bytes": fact(480 * GIB),
            "swap_bytes": fact(8 * GIB),
            "limit_bytes": at_most(256 * GIB),
            "numa": fact([{"id": 0, "processors": fact("0-31"), "memory_bytes": fact(256 * GIB)}]),
        },
        "storage": {
            "store": disk("/home/alice/.local/share/mlenv", "ext4", 4000 * GIB, 900 * GIB),
            "temporary": disk("/tmp", "ext4", 4000 * GIB, 900 * GIB),
            "shared_memory": disk("/dev/shm", "tmpfs", 256 * GIB, 255 * GIB),
        },
        "limits": {
            "memlock_soft_bytes": at_most(None),
            "memlock_hard_bytes": at_most(None),
            "open_files_soft": at_most(65536),
            "open_files_hard": at_most(524288),
        },
        "isolation": {
            "cgroup_version": fact("v2"),
            "cgroup_controllers": fact(["cpu", "memory", "pids"]),
            "max_user_namespaces": fact(100000),
            "unprivileged_user_namespaces": fact(True),
            "apparmor_restricts_namespaces": fact(False),
            "apparmor_profile": fact("unconfined"),
            "selinux": fact("disabled"),
            "seccomp": fact("disabled"),
            "no_new_privileges": fact(False),
            "sandbox": fact(True),
        },
        "containers": {
            "engines": fact([{"name": "docker", "path": "/usr/bin/docker", "version": fact("28.2.2")}]),
            "cdi": fact(
                [{"path": "/etc/cdi/nvidia.yaml", "kind": fact("nvidia.com/gpu"), "devices": fact(["0", "1", "all"])}]
            ),
        },
        "nvidia": {
            "kernel_driver": fact("570.172.08"),
            "user_driver": fact("570.172.08"),
            "mismatch": fact(False),
            "open_module": fact(True),
            "cuda_version": fact("12.8"),
            "cuda_status": fact(0),
            "pci_devices": fact(["0000:17:00.0", "0000:18:00.0"]),
            "device_nodes": fact(True),
            "nvswitch": fact(False),
            "fabric_manager": fact(False),
            "persistence_daemon": fact(True),
            "peermem": fact(True),
            "dma_buf": fact(True),
        },
        "gpus": fact([gpu(0), gpu(1)]),
        "gpu_paths": fact([{"from": 0, "to": 1, "path": fact("NV18")}]),
        "network": {
            "interfaces": fact([interface("ens3f0", "physical", "192.0.2.7/24"), interface("docker0", "virtual", "172.17.0.1/16")]),
            "rdma": fact([]),
            "host_name": fact("node17"),
            "host_addresses": fact(["192.0.2.7"]),
            "host_is_loopback": fact(False),
        },
        "time": {"synchronised": fact(True), "services": fact(["chronyd"]), "clock_source": fact("tsc")},
    }


WHEELS = {
    "torch": "2.9.1",
    "nvidia-cudnn-cu12": "9.10.2.21",
    "nvidia-nccl-cu12": "2.27.5",
    "nvidia-cublas-cu12": "12.8.4.1",
    "nvidia-cuda-runtime-cu12": "12.8.90",
    "triton": "3.5.1",
    "numpy": "2.3.5",
    "transformers": "4.57.1",
    "tqdm": "4.67.1",
    "rich": "14.2.0",
    "requests": "2.32.5",
    "packaging": "25.0",
    "pyyaml": "6.0.3",
}
DEBS = {
    "libc6": "2.36-9+deb12u13",
    "libgomp1": "12.2.0-14+deb12u1",
    "libssl3": "3.0.17-1~deb12u2",
    "openssl": "3.0.17-1~deb12u2",
    "python3": "3.11.2-1+b1",
    "python3.11-minimal": "3.11.2-6+deb12u6",
    "tzdata": "2025b-0+deb12u1",
    "less": "590-2.1~deb12u2",
    "vim-tiny": "2:9.0.1378-2+deb12u2",
}


def record():
    return {
        "schema": "mlenv.run/1",
        "state": "done",
        "start": {
            "id": "20260301-120000-0fa4f1",
            "mlenv": "0.1.0",
            "host": "node17",
            "boot_id": "8a3f0c5e-0001-4000-8000-000000000000",
            "started": "2026-03-01T12:00:00.250Z",
            "image": {"name": "train", "digest": "sha256:" + "1" * 64, "lock_digest": "sha256:" + "2" * 64},
            "argv": ["python", "train.py", "--lr", "0.1", "--seed=1", "--output-dir", "/out/a"],
            "workdir": None,
            "env": [
                {"name": "CUBLAS_WORKSPACE_CONFIG", "value": ":4096:8"},
                {"name": "OMP_NUM_THREADS", "value": "16"},
                {"name": "TEAM", "value": "vision"},
            ],
            "mounts": [
                {"source": "/data/imagenet-v1", "target": "/data", "read_only": True},
                {"source": "/home/alice/out", "target": "/out", "read_only": False},
            ],
            "devices": ["nvidia.com/gpu=0", "nvidia.com/gpu=1"],
            "checked": True,
            "project": "/home/alice/train",
            "runtime": None,
            "options": {
                "limits": {"memory_bytes": 128 * GIB, "cpus": None, "cpuset": None, "pids": None},
                "ulimits": [],
                "shm_bytes": 32 * GIB,
                "tmpfs": [],
                "read_only": False,
                "user": None,
                "groups": [],
                "hostname": None,
                "network": "host",
                "ports": [],
                "rdma": True,
                "labels": [],
            },
        },
        "end": {
            "ended": "2026-03-01T13:00:00.250Z",
            "seconds": 3600.0,
            "exit_code": 0,
            "signal": None,
            "failure": None,
            "usage": {
                "user_seconds": 9000.0,
                "system_seconds": 300.0,
                "read_bytes": 1 << 34,
                "written_bytes": 1 << 30,
                "largest_process_bytes": fact(20 * GIB),
            },
        },
        "code": {
            "commit": fact("1f" * 20),
            "branch": fact("main"),
            "changed": fact([]),
            "changed_digest": fact("sha256:" + "0" * 64),
        },
        "host": host(),
        "environment": {
            "platform": "linux/amd64",
            "wheels": [{"name": n, "version": v, "architecture": None} for n, v in sorted(WHEELS.items())],
            "debs": [{"name": n, "version": v, "architecture": "amd64"} for n, v in sorted(DEBS.items())],
            "env": [{"name": "PATH", "value": "/opt/venv/bin:/usr/bin:/bin"}, {"name": "TOKENIZERS_PARALLELISM", "value": "false"}],
        },
    }


def without_gpus(run):
    run["start"]["devices"] = []


# --- What a test changes ---------------------------------------------------------------------------


def package(kind, name, version):
    def change(run):
        for one in run["environment"][kind]:
            if one["name"] == name:
                one["version"] = version

    return change


def variable(name, value):
    def change(run):
        env = [one for one in run["start"]["env"] if one["name"] != name]
        run["start"]["env"] = env + ([{"name": name, "value": value}] if value is not None else [])

    return change


def of_host(path, value):
    def change(run):
        at = run["host"]
        *folders, last = path.split(".")
        for folder in folders:
            at = at[folder]
        at[last] = fact(value)

    return change


def every_gpu(name, value):
    def change(run):
        for one in run["host"]["gpus"]["value"]:
            one[name] = fact(value)

    return change


def all_of(*changes):
    def change(run):
        for one in changes:
            one(run)

    return change


def argument(old, new):
    def change(run):
        run["start"]["argv"] = [new if word == old else word for word in run["start"]["argv"]]

    return change


def mount(target, source):
    def change(run):
        for one in run["start"]["mounts"]:
            if one["target"] == target:
                one["source"] = source

    return change


def option(name, value, of="options"):
    def change(run):
        options = run["start"]["options"]
        (options["limits"] if of == "limits" else options)[name] = value

    return change


def commit(run):
    run["code"]["commit"] = fact("2e" * 20)


def uncommitted(run):
    run["code"]["changed"] = fact(["model.py"])
    run["code"]["changed_digest"] = fact("sha256:" + "7" * 64)


def other_files(run):
    run["start"]["image"]["files"] = "others"  # see `settle`


def data_gone(run):
    run["start"]["mounts"] = [one for one in run["start"]["mounts"] if one["target"] != "/data"]


def second_gpu_gone(run):
    run["start"]["devices"] = ["nvidia.com/gpu=0"]
    run["host"]["gpus"]["value"].pop()
    run["host"]["gpu_paths"] = fact([])


def killed_by(signal):
    def end(run):
        run["state"] = "killed"
        run["end"].update(exit_code=128 + signal, signal=signal)

    return end


def failed(run):
    run["state"] = "failed"
    run["end"]["exit_code"] = 1


def slower(run):
    run["end"]["seconds"] *= 1.7


GPU, CPU = "gpu", "cpu"

# (what, rule, where it is planted, change, ends that it may come with: none of them at times)
PLANTED = [
    ("newer driver", "driver", GPU, all_of(of_host("nvidia.kernel_driver", "580.95.05"), of_host("nvidia.user_driver", "580.95.05"), of_host("nvidia.cuda_version", "13.0")), [slower, failed]),
    ("older driver", "driver", GPU, all_of(of_host("nvidia.kernel_driver", "535.183.01"), of_host("nvidia.user_driver", "535.183.01"), of_host("nvidia.cuda_version", "12.2")), [failed]),
    ("half an update of the driver", "driver-mismatch", GPU, all_of(of_host("nvidia.user_driver", "570.195.03"), of_host("nvidia.mismatch", True)), [failed]),
    ("cuDNN", "cudnn", GPU, package("wheels", "nvidia-cudnn-cu12", "9.15.1.9"), [slower, failed]),
    ("NCCL", "nccl", GPU, package("wheels", "nvidia-nccl-cu12", "2.28.3"), [slower]),
    ("cuBLAS", "cuda-libraries", GPU, package("wheels", "nvidia-cublas-cu12", "12.9.1.4"), [slower]),
    ("framework", "framework", GPU, package("wheels", "torch", "2.10.0"), [slower, failed]),
    ("framework on processors", "framework", CPU, package("wheels", "torch", "2.10.0"), [slower, failed]),
    ("numerical package", "numeric-packages", CPU, package("wheels", "numpy", "2.4.0"), [failed]),
    ("TF32", "numeric-variables", GPU, variable("NVIDIA_TF32_OVERRIDE", "0"), [slower]),
    ("determinism", "numeric-variables", GPU, variable("CUBLAS_WORKSPACE_CONFIG", None), []),
    ("a hidden GPU", "visible-gpus", GPU, variable("CUDA_VISIBLE_DEVICES", "1"), [slower]),
    ("threads", "threads", CPU, variable("OMP_NUM_THREADS", "1"), [slower]),
    ("quota", "cpu-quota", CPU, of_host("cpu.limit_millicpus", {"most": 2000}), [slower]),
    ("processors", "cpu-count", CPU, of_host("cpu.usable", 8), [slower]),
    ("commit", "code", GPU, commit, [slower, failed]),
    ("uncommitted change", "code", CPU, uncommitted, [failed]),
    ("learning rate", "arguments", GPU, argument("0.1", "0.01"), [failed]),
    ("seed", "arguments", CPU, argument("--seed=1", "--seed=2"), []),
    ("data", "data-mount", GPU, mount("/data", "/data/imagenet-v2"), [failed]),
    ("processor", "cpu-instructions", CPU, all_of(of_host("cpu.model", "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz"), of_host("cpu.flags", ["avx", "avx2", "fma", "sse4_2"]), of_host("cpu.level", "x86-64-v3")), [killed_by(4), slower]),
    ("C library", "system-libraries", CPU, package("debs", "libc6", "2.36-9+deb12u14"), []),
    ("security update", "base-updates", CPU, all_of(package("debs", "libssl3", "3.0.17-1~deb12u3"), package("debs", "openssl", "3.0.17-1~deb12u3")), []),
    ("GPU model", "gpu-model", GPU, all_of(every_gpu("name", "NVIDIA A100-SXM4-80GB"), every_gpu("compute_capability", "8.0"), every_gpu("nvlinks", 12)), [slower, failed]),
    ("MIG", "mig", GPU, every_gpu("mig", True), [failed]),
    ("ECC", "ecc", GPU, every_gpu("ecc", False), [slower]),
    ("one GPU fewer", "gpu-count", GPU, second_gpu_gone, [slower, failed]),
    ("memory limit", "memory-limit", CPU, of_host("memory.limit_bytes", {"most": 16 * GIB}), [killed_by(9)]),
    ("shared memory", "shared-memory", GPU, of_host("storage.shared_memory.size_bytes", 64 << 20), [killed_by(7), failed]),
    ("open files", "open-files", CPU, of_host("limits.open_files_soft", {"most": 1024}), [failed]),
    ("memory of the machine", "memory-total", CPU, of_host("memory.total_bytes", 32 * GIB), [killed_by(9)]),
    ("files of the image", "image-files", CPU, other_files, [failed, slower]),
    ("other libraries first", "search-paths", GPU, variable("LD_LIBRARY_PATH", "/opt/conda/lib"), [failed]),
    ("a missing mount", "mounts", CPU, data_gone, [failed]),
    ("XLA", "numeric-variables", GPU, variable("XLA_FLAGS", "--xla_gpu_deterministic_ops=true"), [slower]),
    ("less memory asked for", "run-memory", CPU, option("memory_bytes", 8 * GIB, "limits"), [killed_by(9)]),
    ("less shared memory asked for", "run-shared-memory", GPU, option("shm_bytes", 64 << 20), [killed_by(7), failed]),
    ("fewer processors asked for", "run-processors", CPU, option("cpus", 2.0, "limits"), [slower]),
    ("no network", "run-network", GPU, option("network", "none"), [failed]),
    ("clock source", "clock-source", CPU, of_host("time.clock_source", "hpet"), [slower]),
]


# --- What explains nothing -------------------------------------------------------------------------


def other_host(run, rng):
    name = f"node{rng.randrange(20, 99)}"
    run["start"]["host"] = name
    run["host"]["network"]["host_name"] = fact(name)
    run["host"]["network"]["host_addresses"] = fact([f"192.0.2.{rng.randrange(8, 250)}"])


def other_variable(run, rng):
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(["WANDB_RUN_ID", "RUN_NAME", "FOO", "EXPERIMENT", "COLUMNS", "SLURM_JOB_ID", "EDITOR"])
        variable(name, str(rng.randrange(1000)))(run)


def other_team(run, rng):
    variable("TEAM", rng.choice(["speech", "robots"]))(run)


def interface_names(run, rng):
    run["host"]["network"]["interfaces"]["value"][0]["name"] = rng.choice(["eth0", "enp1s0", "eno1"])


def interface_added(run, rng):
    run["host"]["network"]["interfaces"]["value"].append(interface(f"veth{rng.randrange(99)}", "virtual", "172.18.0.1/16"))


def python_package(run, rng):
    for name in rng.sample(["tqdm", "rich", "requests", "packaging", "pyyaml"], rng.randrange(1, 4)):
        package("wheels", name, f"{rng.randrange(50, 99)}.{rng.randrange(9)}")(run)


def new_package(run, rng):
    run["environment"]["wheels"].append({"name": f"zzz{rng.randrange(9)}", "version": "1.0", "architecture": None})


def debian_program(run, rng):
    name = rng.choice(["tzdata", "less", "vim-tiny"])
    package("debs", name, DEBS[name] + "+b1")(run)


def kernel_build(run, rng):
    run["host"]["system"]["kernel"] = fact(f"6.1.0-{rng.randrange(42, 60)}-amd64")


def free_bytes(run, rng):
    run["host"]["storage"]["store"]["free_bytes"] = fact(rng.randrange(300, 1200) * GIB)
    run["host"]["memory"]["available_bytes"] = fact(rng.randrange(300, 480) * GIB)


def memory_jitter(run, rng):
    run["host"]["memory"]["total_bytes"] = fact(512 * GIB + rng.randrange(-(1 << 20), 1 << 20))


def engine(run, rng):
    run["host"]["containers"]["engines"]["value"][0]["version"] = fact(f"28.{rng.randrange(3, 9)}.0")


def output_folder(run, rng):
    argument("/out/a", f"/out/{rng.randrange(999)}")(run)


def output_mount(run, rng):
    mount("/out", f"/scratch/{rng.choice(['bob', 'carol'])}/out")(run)


def project(run, rng):
    run["start"]["project"] = f"/home/{rng.choice(['bob', 'carol'])}/work/train"


def branch(run, rng):
    run["code"]["branch"] = fact(f"try-{rng.randrange(99)}")


def gpu_ids(run, rng):
    for one in run["host"]["gpus"]["value"]:
        one["uuid"] = fact(f"GPU-{rng.randrange(1 << 32):08x}-1111-0000-0000-000000000000")
        one["pci_address"] = fact(f"0000:{rng.randrange(0x20, 0xF0):02x}:00.0")


def swap(run, rng):
    run["host"]["memory"]["swap_bytes"] = fact(rng.randrange(1, 32) * GIB)


def title(run, rng):
    run["host"]["system"]["distribution_version"] = fact(f"12.{rng.randrange(1, 12)}")


def program_version(run, rng):
    run["start"]["mlenv"] = f"0.1.{rng.randrange(1, 9)}"


def user(run, rng):
    run["host"]["system"]["user_id"] = fact(rng.randrange(1001, 2000))


def time_services(run, rng):
    run["host"]["time"]["services"] = fact([rng.choice(["ntpd", "systemd-timesyncd"])])


def image_name(run, rng):
    run["start"]["image"]["name"] = f"registry.example/train:v{rng.randrange(9)}"


def usage(run, rng):
    run["end"]["usage"]["user_seconds"] += rng.randrange(-300, 300)
    run["end"]["seconds"] *= rng.uniform(0.97, 1.03)


def driver_of_no_use(run, rng):
    if not run["start"]["devices"]:
        all_of(of_host("nvidia.kernel_driver", "580.95.05"), of_host("nvidia.user_driver", "580.95.05"), every_gpu("name", "NVIDIA L4"))(run)


IRRELEVANT = [
    other_host, other_variable, other_team, interface_names, interface_added, python_package, new_package, debian_program, kernel_build,
    free_bytes, memory_jitter, engine, output_folder, output_mount, project, branch, gpu_ids, swap, title, program_version, user,
    time_services, image_name, usage, driver_of_no_use,
]  # fmt: skip


# With other packages the image is another one anyway.
OF_PACKAGES = [python_package, new_package, debian_program]


def settle(run):
    """An image's digest follows from what is in it."""
    image = run["start"]["image"]
    packages = json.dumps([run["environment"]["wheels"], run["environment"]["debs"]])
    image["lock_digest"] = "sha256:" + hashlib.sha256(packages.encode()).hexdigest()
    image["digest"] = "sha256:" + hashlib.sha256((packages + image.pop("files", "")).encode()).hexdigest()


def pair(cause, seed):
    what, _, where, change, ends = cause
    rng = random.Random(f"{what} {seed}")
    one = record()
    if where == CPU:
        without_gpus(one)
    other = copy.deepcopy(one)
    other["start"].update(
        id=f"20260302-{rng.randrange(10, 24)}0000-{rng.randrange(1 << 24):06x}",
        boot_id=f"{rng.randrange(1 << 32):08x}-0001-4000-8000-000000000000",
        started="2026-03-02T12:00:00.250Z",
    )
    other["end"]["ended"] = "2026-03-02T13:00:00.250Z"
    for alter in rng.sample([one for one in IRRELEVANT if what != "files of the image" or one not in OF_PACKAGES], 10):
        alter(other, rng)
    change(other)
    end = rng.choice([None, *ends])
    if end is not None:
        end(other)
    settle(one)
    settle(other)
    return one, other


def main():
    mlenv, folder, seeds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    wrong = 0
    for cause in PLANTED:
        for seed in range(seeds):
            for name, run in zip(("a", "b"), pair(cause, seed)):
                (folder / f"{name}.json").write_text(json.dumps(run))
            found = subprocess.run(
                [mlenv, "--json", "diff", str(folder / "a.json"), str(folder / "b.json")], capture_output=True, text=True, check=False
            )
            rules = [one["rule"] for one in json.loads(found.stdout)["findings"]] if found.stdout else []
            if found.returncode != 3 or rules[:1] != [cause[1]]:
                wrong += 1
                print(f"{cause[0]}, seed {seed}: status {found.returncode}, not {cause[1]} first but {rules} {found.stderr}")
    print(f"{len(PLANTED)} causes, {seeds} seeds each: {wrong} wrong")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
