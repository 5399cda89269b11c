#include "cli/run_vm.hpp"

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <cmath>

#include "base/error.hpp"
#include "base/pool.hpp"
#include "cli/settings.hpp"
#include "cli/vm_kernel.hpp"
#include "images/stacked_trees.hpp"
#include "runner/local/limits.hpp"
#include "runner/vm/disk/image_disk.hpp"
#include "runner/vm/disk/scratch_disk.hpp"

namespace mlenv::cli {
namespace {

constexpr const char* kQemu = "qemu-system-x86_64";
constexpr std::uint64_t kLeastMemory = std::uint64_t{128} << 20U;

Error no_option(std::string_view option, std::string why) {
  return usage_error("vm-option", "a virtual machine does not have `{}`", option)
      .because(std::move(why))
      .hint("leave it out, or leave `--runtime vm` out");
}

/// Half of what this machine has.
std::uint64_t usual_memory() {
  struct sysinfo info {};
  ::sysinfo(&info);
  constexpr std::uint64_t kMebi = std::uint64_t{1} << 20U;
  const std::uint64_t half = std::uint64_t{info.totalram} * info.mem_unit / 2;
  return std::max(kLeastMemory, half / kMebi * kMebi);
}

std::uint64_t memory_of(const JobLimits& limits) {
  const std::uint64_t bytes = limits.memory_bytes.value_or(usual_memory());
  if (bytes >= kLeastMemory) return bytes;
  throw usage_error("vm-option", "`--memory` is too little for a virtual machine")
      .because("its kernel alone needs 128 MiB")
      .hint("give it `--memory 512m`");
}

std::uint64_t processors_of(const JobLimits& limits) {
  if (!limits.cpus) return mlenv::usable_processors();
  check_cpus(limits);
  if (*limits.cpus == std::floor(*limits.cpus)) return static_cast<std::uint64_t>(*limits.cpus);
  throw usage_error("vm-option", "a virtual machine has whole processors: `--cpus {}`",
                    *limits.cpus)
      .hint(fmt::format("write `--cpus {}`", std::ceil(*limits.cpus)));
}

std::uint64_t disk_of(const JobOptions& options, const fs::path& store) {
  if (!options.disk_bytes) return usual_scratch_bytes(store);
  const std::uint64_t bytes = *options.disk_bytes;
  if (bytes < kLeastScratch || bytes > kMostScratch) {
    throw usage_error("vm-option", "`--disk` is too {} for a virtual machine",
                      bytes < kLeastScratch ? "little" : "much")
        .because(fmt::format("it may be between {} and {}", human_bytes(kLeastScratch),
                             human_bytes(kMostScratch)))
        .hint("leave it out: most of what is free is there for it");
  }
  const std::uint64_t free = free_bytes(store);
  if (bytes <= free) return bytes;
  throw usage_error("vm-option", "`--disk` is more than this machine's disk has")
      .because(fmt::format("where the store is, {} are free, and {} are asked for",
                           human_bytes(free), human_bytes(bytes)))
      .hint("leave it out: most of what is free is there for it");
}

std::string require_qemu() {
  utsname machine{};
  ::uname(&machine);
  if (std::string_view(machine.machine) != "x86_64") {
    throw failure("no-vm", "virtual machines are for x86_64, and this machine is {}",
                  machine.machine)
        .hint("leave `--runtime vm` out");
  }
  if (const auto program = find_program(kQemu)) return program->string();
  throw failure("no-vm", "there is no `{}` here, which runs virtual machines", kQemu)
      .hint("install the package `qemu-system-x86`");
}

}  // namespace

void check_vm_options(JobOptions& options, const std::string& network) {
  if (network == "host") {
    throw no_option("--network host", "it has a network of its own")
        .hint("use `--network private`, which it has by default, and `--publish` for its ports");
  }
  if (network.empty()) options.network = "private";
  if (options.rdma) {
    throw no_option("--rdma", "this machine's devices are not in it");
  }
  if (!options.ulimits.empty()) throw no_option("--ulimit", "it has a kernel of its own");
  if (options.limits.cpuset) throw no_option("--cpuset-cpus", "give it `--cpus`");
  if (options.limits.memory_swap_bytes || options.limits.unlimited_swap) {
    throw no_option("--memory-swap",
                    "`--memory` is all that it has: this machine's swap is not in it");
  }
  if (options.limits.pids) throw no_option("--pids-limit", "it has a kernel of its own");
  (void)memory_of(options.limits);
  (void)processors_of(options.limits);
}

void check_vm_devices(const GpuChoice& gpus, const std::vector<CdiName>& devices) {
  const bool wanted = gpus.kind != GpuChoice::Kind::automatic && gpus.kind != GpuChoice::Kind::none;
  if (wanted) throw no_option("--gpus", "mlenv does not hand GPUs over to it (docs/vm.md)");
  if (!devices.empty()) throw no_option("--device", "this machine's devices are not in it");
}

VmSpec vm_for(Ui& ui, const LocalRun& run, const Image& image) {
  VmSpec spec;
  spec.qemu = require_qemu();
  if (run.config.architecture != "amd64") {
    throw failure("no-vm", "virtual machines are for x86_64, and this image is for {}",
                  run.config.architecture);
  }
  const StackedTrees trees{run.trees};
  constexpr std::uint64_t kMost = std::uint64_t{1} << 16U;
  const LockedKernel locked =
      vm_kernel(ui, kernel_suite(trees.read("etc/os-release", kMost).value_or("")));
  spec.kernel = fs::absolute(locked.kernel.file).string();
  spec.modules = fs::absolute(locked.kernel.modules).string();
  spec.kernel_version = locked.kernel.version;
  spec.kernel_lock = locked.lock_digest;
  spec.disk = fs::absolute(provide_image_disk(ui.store(), image, ui.progress())).string();
  spec.remembered = (cache_folder() / "kvm").string();
  spec.memory_bytes = memory_of(run.options.limits);
  spec.cpus = processors_of(run.options.limits);
  spec.disk_bytes = disk_of(run.options, ui.store().root());
  spec.quiet = ui.options.quiet;
  return spec;
}

}  // namespace mlenv::cli
