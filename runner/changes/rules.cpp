#include "runner/changes/rules.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace mlenv::changes {
namespace {

using W = Weight;

constexpr unsigned when(Symptom one) { return 1U << static_cast<unsigned>(one); }
template <class... More>
constexpr unsigned when(Symptom one, More... more) {
  return when(one) | when(more...);
}
constexpr unsigned kNothing = 0;
constexpr unsigned kAny = when(Symptom::fails, Symptom::slower);

constexpr std::string_view kCudaGuide = "NVIDIA, CUDA Compatibility guide";
constexpr std::string_view kReproducible = "PyTorch, Reproducibility";
constexpr std::string_view kCgroups = "Linux, cgroup-v2";

// In order of likelihood among those of one weight. Each stands in docs/diff.md.
constexpr std::array kDifferenceRules = std::to_array<Rule>({
    // What breaks.
    {"architecture", W::breaks, when(Symptom::fails), "processor architecture",
     "programs of one architecture do not run on another", "OCI image specification, config",
     "build the image for this platform (`mlenv build --platform`)"},
    {"driver-mismatch", W::breaks, when(Symptom::fails), "parts of the NVIDIA driver",
     "kernel module and libraries of two versions refuse to work together, as after an update "
     "without a restart",
     "NVIDIA, CUDA Driver API, CUresult", "restart the machine, or load the module again"},
    {"driver", W::speed, kAny, "NVIDIA driver",
     "it schedules, clocks and allocates, and compiles code that the image has as PTX alone",
     "NVIDIA, Data Center Drivers, release notes; CUDA Compatibility guide",
     "install the driver that worked, or a newer one of a production branch"},
    {"cuda-init", W::breaks, when(Symptom::fails), "what cuInit returns",
     "no CUDA program starts where it is not 0", "NVIDIA, CUDA Driver API, CUresult",
     "`mlenv check` says why"},
    {"device-nodes", W::breaks, when(Symptom::fails), "device files of the GPUs",
     "without /dev/nvidiactl and /dev/nvidia-uvm no CUDA program starts",
     "NVIDIA container toolkit", "`nvidia-modprobe -u -c 0`, or nvidia-persistenced"},
    {"gpu-count", W::breaks, kAny, "number of GPUs",
     "the global batch and with it the result follow from it, and what asks for more than there "
     "are fails",
     kReproducible, "give the same number (`--gpus`), or scale batch and learning rate"},
    {"gpu-memory", W::breaks, when(Symptom::fails), "memory of the GPUs",
     "what just fitted does not fit in less", "PyTorch, CUDA semantics, Memory management",
     "a smaller batch, or gradient accumulation"},
    {"mig", W::breaks, kAny, "MIG",
     "with MIG a program sees one instance alone: a part of the GPU's memory and processors",
     "NVIDIA, Multi-Instance GPU user guide",
     "`nvidia-smi -mig 0`, or ask for an instance that is "
     "large enough"},
    {"fabric-manager", W::breaks, when(Symptom::fails), "Fabric Manager",
     "on a machine with NVSwitches CUDA does not start without it",
     "NVIDIA, Fabric Manager user guide", "start nvidia-fabricmanager in the driver's version"},
    {"memory-limit", W::breaks, when(Symptom::fails, Symptom::out_of_memory),
     "memory limit (control group)", "what needs more than the limit is killed by the kernel",
     kCgroups, "a higher limit, or fewer workers and smaller batches"},
    {"memory-total", W::breaks, when(Symptom::fails, Symptom::out_of_memory),
     "memory of the machine", "what needs more than there is swaps or is killed",
     "proc(5), /proc/meminfo", "fewer workers, smaller batches"},
    {"shared-memory", W::breaks, when(Symptom::fails, Symptom::bus_error),
     "shared memory (/dev/shm)",
     "data loaders hand batches over in it; where it is full they die of a bus error",
     "PyTorch, torch.utils.data", "a larger /dev/shm, or fewer workers"},
    {"open-files", W::breaks, when(Symptom::fails), "limit of open files",
     "data loaders hold a file for each tensor that they share", "PyTorch, torch.multiprocessing",
     "`ulimit -n`, or the sharing strategy file_system"},
    {"run-memory", W::breaks, when(Symptom::fails, Symptom::out_of_memory), "`--memory` of the run",
     "what needs more is killed by the kernel", "docs/run.md", "give it as much"},
    {"run-shared-memory", W::breaks, when(Symptom::fails, Symptom::bus_error),
     "`--shm-size` of the run",
     "data loaders hand batches over in /dev/shm; where it is full they die of a bus error",
     "docs/run.md", "give it as much, or fewer workers"},
    {"run-processes", W::breaks, when(Symptom::fails), "`--pids-limit` of the run",
     "where no more processes and threads can be started, data loaders and thread pools fail",
     "docs/run.md", "give it as many"},
    {"run-ulimits", W::breaks, when(Symptom::fails), "`--ulimit` of the run",
     "open files, locked memory and the like end earlier", "setrlimit(2)", "give it the same"},
    {"run-network", W::breaks, when(Symptom::fails), "`--network` of the run",
     "without the host's network other ranks, data servers and hubs may be out of reach",
     "docs/run.md", "give it the same"},
    {"run-read-only", W::breaks, when(Symptom::fails), "`--read-only` of the run",
     "what writes into the image fails", "docs/run.md", "write to a mount, /tmp or HOME"},
    {"run-user", W::breaks, when(Symptom::fails), "`--user` of the run",
     "files of others cannot be read or written, and HOME is another", "docs/run.md",
     "give it the same"},
    {"disk-space", W::breaks, when(Symptom::fails), "free disk space",
     "checkpoints and caches cannot be written to a full disk", "statvfs(3)", "make room"},
    {"mounts", W::breaks, when(Symptom::fails), "mounts",
     "what the code reads or writes there is not there, or may not be written", "docs/run.md",
     "give the same mounts (`-v`)"},
    {"search-paths", W::breaks, kAny, "search paths", "other libraries or modules are found first",
     "ld.so(8); Python, PYTHONPATH", "leave it unset, so that the image's own are found"},
    {"namespaces", W::breaks, when(Symptom::fails), "namespaces for containers",
     "mlenv builds and runs in them", "docs/sandbox.md", "`mlenv check` says what forbids them"},
    // What changes results.
    {"parameters", W::results,
     when(Symptom::fails, Symptom::out_of_memory, Symptom::bus_error, Symptom::illegal_instruction,
          Symptom::slower),
     "parameter of the matrix", "the two are variations of it", "docs/experiments.md",
     "the other value"},
    {"code", W::results, kAny, "code", "it does something else", "docs/run-records.md",
     "`git diff` of the two states; run the older one again"},
    {"kept-files", W::results, kAny, "files that an earlier run kept",
     "they lie over the image's, and may be other programs and packages", "docs/run.md",
     "start from the image alone: leave `--from` out"},
    {"program", W::results, kAny, "program", "it does something else", "docs/run-records.md",
     "run the same"},
    {"arguments", W::results, kAny, "arguments", "they decide what the program computes",
     "docs/run-records.md", "run with the same"},
    {"data-mount", W::results, kAny, "data", "a model trained on other data is another model",
     "docs/data.md", "compare the data, or declare it with its digest (`data:` in the recipe)"},
    {"framework", W::results, kAny, "framework",
     "releases choose other kernels, defaults and seeds: results are promised within a release "
     "alone",
     kReproducible, "pin it (`framework:` in the recipe), lock and build"},
    {"cuda-release", W::results, kAny, "CUDA release of the image",
     "other libraries and compilers, and another oldest driver", kCudaGuide,
     "pin it (`cuda:` in the recipe), lock and build"},
    {"cudnn", W::results, kAny, "cuDNN",
     "its heuristics choose other algorithms, with other sums and speeds",
     "NVIDIA, cuDNN, Odds and Ends, Reproducibility",
     "pin it (`libraries: {cudnn: …}` in the recipe)"},
    {"cuda-libraries", W::results, kAny, "CUDA libraries",
     "results are the same within one version alone", "NVIDIA, cuBLAS, Results Reproducibility",
     "lock the version that worked"},
    {"gpu-model", W::results, kAny, "GPU model",
     "other kernels are chosen for it, with other sums, speeds and limits", kReproducible,
     "run on the same model; `mlenv check` tells whether the image has code for it"},
    {"visible-gpus", W::results, kAny, "GPUs that the program sees",
     "the global batch follows from their number, the speed from which they are",
     "NVIDIA, CUDA C++ Programming Guide, CUDA Environment Variables", "set it as it was"},
    {"numeric-variables", W::results, when(Symptom::slower, Symptom::illegal_instruction),
     "variables that decide how is computed",
     "they choose precision (TF32), determinism or instructions", kReproducible,
     "set them as they were"},
    {"cpu-instructions", W::results, when(Symptom::illegal_instruction, Symptom::slower),
     "instructions of the processor",
     "libraries choose kernels by them (AVX-512, AMX), with other sums and speeds; code that was "
     "compiled for what is missing dies of SIGILL",
     "oneDNN, CPU Dispatcher Control; NumPy, CPU/SIMD Optimizations",
     "ONEDNN_MAX_CPU_ISA, ATEN_CPU_CAPABILITY and NPY_DISABLE_CPU_FEATURES choose the same on "
     "both"},
    {"system-libraries", W::results, kAny, "libraries below the framework",
     "libm's functions, OpenMP and BLAS round and schedule otherwise in another version",
     "glibc manual, Errors in Math Functions", "lock and build with the versions that worked"},
    {"python", W::results, kAny, "Python", "another interpreter has another standard library",
     "Python, What's New", "pin it (`python:` in the recipe)"},
    {"numeric-packages", W::results, kAny, "numerical packages",
     "they compute or prepare what the framework trains on", kReproducible,
     "lock the versions that worked (`packages: [NAME==…]`)"},
    {"image-files", W::results, kAny, "the image's own files",
     "packages and versions are the same, other files of the image are not: code, a `run` step",
     "docs/recipe.md", "`mlenv diff` of the two images shows the layers"},
    {"image", W::results, kAny, "image", "another image; what is in it is not known here",
     "docs/run-records.md",
     "`mlenv pull` it; or have the run handed over with `mlenv runs show --json RUN` where the "
     "image "
     "is"},
    // What changes speed.
    {"emulation", W::speed, when(Symptom::slower), "whether the processor was emulated",
     "an emulated virtual machine is many times slower than one with KVM, or than the host",
     "docs/vm.md", "compare runs of one kind; let KVM work, or leave `--runtime vm` out"},
    {"vm", W::speed, kAny, "virtual machine",
     "another kernel, other processors and memory, and devices that are not the host's",
     "docs/vm.md", "give it the same `--memory` and `--cpus`, and the same kernel"},
    {"threads", W::speed, when(Symptom::slower), "number of threads",
     "too few leave processors idle, too many fight for them; sums are in another order",
     "PyTorch, CPU threading; OpenMP, OMP_NUM_THREADS",
     "set it to the processors that may be used"},
    {"run-processors", W::speed, when(Symptom::slower), "processors of the run",
     "thread pools have as many threads as they see processors, and share what the limit leaves",
     "docs/run.md", "give it the same `--cpus` and `--cpuset-cpus`"},
    {"run-rdma", W::speed, kAny, "`--rdma` of the run",
     "without the InfiniBand devices NCCL goes over TCP", "NVIDIA, NCCL, NCCL_IB_DISABLE",
     "give it the same"},
    {"cpu-quota", W::speed, when(Symptom::slower), "processor quota (control group)",
     "more threads than the quota are stopped for the rest of each period", kCgroups,
     "a higher quota, or as many threads and workers as it allows"},
    {"cpu-count", W::speed, when(Symptom::slower), "processors that may be used",
     "data loaders and operators have fewer to run on, or more", "sched_setaffinity(2)",
     "give as many; set threads and workers to their number"},
    {"nccl", W::speed, kAny, "NCCL",
     "it chooses other algorithms and paths between GPUs; ranks of two versions do not work "
     "together",
     "NVIDIA, NCCL release notes", "pin it (`libraries: {nccl: …}` in the recipe)"},
    {"communication-variables", W::speed, kAny, "variables of the communication",
     "they choose network, algorithm and protocol between GPUs",
     "NVIDIA, NCCL, Environment Variables", "set them as they were"},
    {"execution-variables", W::speed, kAny, "variables of the execution",
     "they turn compilation, asynchronous launches or caches on and off",
     "PyTorch, CUDA Environment Variables; torch.compile", "set them as they were"},
    {"allocator-variables", W::speed, when(Symptom::fails, Symptom::out_of_memory, Symptom::slower),
     "variables of the memory allocator", "they decide how memory is reserved and fragmented",
     "PyTorch, CUDA semantics, Memory management; JAX, GPU memory allocation",
     "set them as they were"},
    {"ecc", W::speed, when(Symptom::slower), "ECC of the GPUs",
     "it takes bandwidth, and on some models memory", "NVIDIA, nvidia-smi(1), ECC Mode",
     "`nvidia-smi -e`"},
    {"gpu-links", W::speed, when(Symptom::slower), "links of the GPUs",
     "gradients go over them: fewer NVLinks or PCIe lanes, longer steps",
     "NVIDIA, NCCL, Troubleshooting, GPU-to-GPU communication",
     "`nvidia-smi topo -m`, `nvidia-smi nvlink -s`; `mlenv probe` measures"},
    {"gpu-direct", W::speed, when(Symptom::slower), "GPUDirect RDMA",
     "without it data between hosts goes through the processor's memory",
     "NVIDIA, NCCL, Troubleshooting, GPU Direct", "load nvidia-peermem, or a kernel with dma-buf"},
    {"rdma", W::speed, kAny, "InfiniBand and RoCE ports",
     "NCCL falls back to sockets where no port is active", "NVIDIA, NCCL, Troubleshooting",
     "`ibstat`; bring the port up"},
    {"network-speed", W::speed, when(Symptom::slower), "speed of the network",
     "data and gradients between hosts go over it", "Linux, sysfs-class-net, speed",
     "`ethtool` of the interface"},
    {"cpu-model", W::speed, when(Symptom::slower), "processor", "another clock, cache and memory",
     "/proc/cpuinfo", "compare on the same"},
    {"clock-source", W::speed, when(Symptom::slower), "clock source of the kernel",
     "with hpet or acpi_pm each look at the time asks a device, many times as slow as with tsc",
     "Linux, Timekeeping", "`clocksource=tsc` where the hardware allows it"},
    {"file-system", W::speed, when(Symptom::slower), "file system",
     "reading many small files from a network is slow", "statfs(2)",
     "keep data and the store on a local disk"},
    {"numa", W::speed, when(Symptom::slower), "NUMA nodes", "memory of another node is slower",
     "numa(7)", "bind processes to the node of their GPU"},
    {"driver-module", W::speed, kAny, "kernel module of the NVIDIA driver",
     "the open and the closed one differ in what they support",
     "NVIDIA, Driver installation guide, Kernel modules", "install the kind that worked"},
    {"persistence", W::speed, when(Symptom::slower), "persistence mode of the GPUs",
     "without it the driver is loaded again at each start, a second or more",
     "NVIDIA, Driver persistence", "run nvidia-persistenced"},
    {"wsl", W::speed, kAny, "WSL", "GPUs are reached through Windows' driver",
     "NVIDIA, CUDA on WSL user guide", "compare on the same"},
    // What is worth knowing.
    {"base-updates", W::note, kNothing, "updates of the base system",
     "security updates keep the interface of a library; rarely they change speed or break",
     "Debian, Security FAQ", "`mlenv lock` takes them, the older lock has what was before"},
    {"kernel", W::note, kNothing, "kernel", "another scheduler, other drivers and mitigations",
     "uname(2)", "boot the kernel that worked"},
    {"python-packages", W::note, kNothing, "other Python packages",
     "none that computes, as far as their names tell", "docs/diff.md",
     "lock the versions that worked"},
    {"container", W::note, kNothing, "container around mlenv",
     "limits, devices and system calls are its own", "docs/facts.md", "compare in the same"},
    {"confinement", W::note, kNothing, "confinement of processes",
     "AppArmor, SELinux or seccomp forbid calls", "docs/facts.md",
     "look into the kernel's log for what was denied"},
    {"locked-memory", W::note, kNothing, "limit of locked memory",
     "InfiniBand and pinned buffers need it", "NVIDIA, NCCL, Troubleshooting",
     "`ulimit -l unlimited`"},
    {"host-loopback", W::note, kNothing, "address of the host's own name",
     "where it is loopback, other hosts of a distributed run are sent to themselves",
     "gethostbyname(3)", "correct /etc/hosts"},
    {"clock", W::note, kNothing, "synchronisation of the clock",
     "logs of several hosts cannot be put in order, certificates may seem out of date",
     "adjtimex(2)", "run chrony or systemd-timesyncd"},
    {"workdir", W::note, kNothing, "working directory", "relative paths lead elsewhere",
     "docs/run.md", "give the same (`-w`)"},
    {"data-path", W::note, kNothing, "folders that are mounted",
     "the same name at another place; whether it holds the same is not known", "docs/data.md",
     "compare them, or declare data with its digest (`data:` in the recipe)"},
    {"not-checked", W::note, kNothing, "whether `mlenv check` was asked",
     "what it would have said of the host is not known", "docs/check.md", "leave `--no-check` out"},
    {"run-options", W::note, kNothing, "other options of the run",
     "folders in memory, ports, groups and the host's name", "docs/run.md", "give it the same"},
    {"runtime", W::note, kNothing, "container runtime", "runc and crun differ in small things",
     "docs/run.md", "give the same (`--runtime`)"},
    {"image-settings", W::note, kNothing, "settings of the image",
     "command, user, folders and steps of the recipe", "docs/recipe.md", "build with the same"},
    {"debian-packages", W::note, kNothing, "other Debian packages",
     "programs that a training rarely calls", "docs/diff.md", "lock the versions that worked"},
    {"variables", W::note, kNothing, "other variables",
     "none that a framework or library is known to read", "docs/diff.md", "set them as they were"},
    {"swap", W::note, kNothing, "swap", "with less of it memory ends earlier",
     "proc(5), /proc/meminfo", "`swapon`"},
    {"output-arguments", W::note, kNothing, "arguments that name outputs",
     "folders, names and logs, by the options' names", "docs/diff.md", "none is needed"},
    {"distribution", W::note, kNothing, "the host's distribution",
     "the image brings its own; kernel and driver stand apart", "os-release(5)", "none is needed"},
    {"user", W::note, kNothing, "user id of mlenv", "files may belong to somebody else",
     "geteuid(2)", "compare as the same user"},
    {"mlenv", W::note, kNothing, "version of mlenv", "its own changes are in CHANGELOG.md",
     "CHANGELOG.md", "run with the same"},
    {"outcome", W::note, kNothing, "end of the run",
     "nothing else that is recorded differs: chance, or what no record holds",
     "docs/run-records.md", "run both again, to see whether it stays so"},
    // What cannot matter.
    {"run-detail", W::incidental, kNothing, "run", "", "", ""},
    {"image-detail", W::incidental, kNothing, "image", "", "", ""},
    {"host-detail", W::incidental, kNothing, "host", "", "", ""},
});

}  // namespace

std::span<const Rule> rules() { return kDifferenceRules; }

const Rule& rule_of(std::string_view id) {
  const auto* found = std::find_if(kDifferenceRules.begin(), kDifferenceRules.end(),
                                   [&](const Rule& one) { return one.id == id; });
  if (found == kDifferenceRules.end()) {
    throw Error{Kind::internal, "bug", fmt::format("no rule `{}`", id)};
  }
  return *found;
}

Changes changes_between(const Moment& from, const Moment& to, const Texts& code_files) {
  Compared here(from, to, code_files);
  for (auto* look :
       {parameters, code,      command, mounts,   run_settings, run_options, variables, image,
        packages,   driver,    gpus,    gpu_host, processors,   memory,      kernel,    limits,
        disks,      isolation, network, clock,    details,      outcome}) {
    look(here);
  }
  return std::move(here).take();
}

Changes changes_in(const EnvironmentDiff& installed, const ValueChanges& image_values) {
  EnvironmentDiff all = installed;
  all.values.insert(all.values.end(), image_values.begin(), image_values.end());
  Compared here(all);
  packages(here);
  return std::move(here).take();
}

}  // namespace mlenv::changes
