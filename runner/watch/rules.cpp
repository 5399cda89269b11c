// The rules, in the order in which they are looked at. docs/watch.md tells what each means.
#include <algorithm>

#include <fmt/core.h>

#include "recipes/text.hpp"
#include "runner/watch/answer.hpp"
#include "runner/watch/thresholds.hpp"

namespace mlenv::watch {
namespace {

using Advice = std::vector<std::string>;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string cpus_text(const Figures& figures) {
  return fmt::format("{:.1f} of {:.4g} {} in use", figures.cpu.used, figures.cpu.usable,
                     figures.cpu.usable == 1 ? "processor" : "processors");
}

/// Processors that the job would use if it had them.
double wanted(const Figures& figures) { return figures.cpu.used + figures.cpu.queued; }
double stalled(const Figures& figures) { return 1 - figures.running; }

struct GpuSums {
  double busy = 0;  ///< of those that are not idle
  std::size_t used = 0;
  std::vector<std::string> idle;
  std::vector<std::string> slowed;
  std::size_t known = 0;
  bool low() const { return used > 0 && busy < kLowGpu; }
};

GpuSums sums_of(const Figures& figures) {
  GpuSums sums;
  for (const GpuFigures& gpu : figures.gpus.value_or(std::vector<GpuFigures>{})) {
    if (gpu.slowed >= kSlowedGpu) sums.slowed.push_back(std::to_string(gpu.index));
    if (!gpu.busy) continue;
    ++sums.known;
    if (*gpu.busy < kIdleGpu) {
      sums.idle.push_back(std::to_string(gpu.index));
    } else {
      sums.busy += *gpu.busy;
      ++sums.used;
    }
  }
  if (sums.used > 0) sums.busy /= static_cast<double>(sums.used);
  return sums;
}

std::string busy_gpus_text(const GpuSums& gpus) {
  return fmt::format("{} busy {} of the time", counted(gpus.used, "GPU"), percent(gpus.busy));
}

class Judge {
 public:
  Judge(const Figures& figures, const Setting& setting)
      : figures_(figures), setting_(setting), gpus_(sums_of(figures)) {}

  std::vector<Finding> findings() {
    if (figures_.seconds < kShortest || figures_.samples < kFewest) {
      add("too-short",
          fmt::format("{} in {:.1f} s", counted(figures_.samples, "sample"), figures_.seconds),
          "that is too short to say anything", {});
      return std::move(found_);
    }
    const bool blind = setting_.has_gpus && gpus_.known == 0;
    if (blind) unknown_gpus();
    limits();
    gpus();
    // What a job on busy GPUs does with its processors is enough, however little it is; and those
    // of which nothing is known may be busy.
    const bool busy_gpus = gpus_.used > 0 && !gpus_.low();
    if (!busy_gpus && !blind && !explained_) processors();
    if (!busy_gpus && !blind) rivals();
    if (found_.empty()) conclude(busy_gpus);
    return std::move(found_);
  }

 private:
  void add(std::string rule, std::string saw, std::string means, Advice advice) {
    found_.push_back({std::move(rule), std::move(saw), std::move(means), std::move(advice)});
  }

  void limits() {
    const CpuSample& cpu = figures_.cpu;
    if (cpu.throttled.value_or(0) >= kThrottled && cpu.used >= kQuotaUsed * cpu.usable) {
      explained_ = true;
      quota_ = true;
      add("cpu-quota",
          fmt::format("{}, all that its quota allows; used up in {} of its periods",
                      cpus_text(figures_), percent(*cpu.throttled)),
          "the job would use more processors than its control group lets it",
          {"a larger `--cpus`, or none, where you set it; else ask for more processors where the "
           "job is scheduled (Slurm's `--cpus-per-task`, Kubernetes' `limits.cpu`)",
           fmt::format("or no more threads than that: `-e OMP_NUM_THREADS={:.0f}`",
                       std::max(cpu.usable, 1.0))});
    }
    if (figures_.memory_used.value_or(0) >= kMemoryFull && figures_.memory_shortages > 0) {
      add("memory-limit",
          fmt::format("{} of the memory that its control group allows, run into {}",
                      percent(*figures_.memory_used), counted(figures_.memory_shortages, "time")),
          "the kernel takes pages away all the time, and may end the job soon",
          {"a larger `--memory`, a smaller batch, fewer workers"});
    }
    if (figures_.swapped >= kSwapped && figures_.major_faults_per_second >= kSwapFaults) {
      add("swapping",
          fmt::format("{} of its memory lie in swap, {:.0f} pages a second are read back",
                      percent(figures_.swapped), figures_.major_faults_per_second),
          "the job waits for memory that is on a disk",
          {"a smaller batch, fewer workers, or a machine with more memory"});
    }
  }

  void unknown_gpus() {
    add("gpus-unknown", cpus_text(figures_),
        "of the GPUs nothing is known: " + figures_.gpus_unknown.value_or("NVML does not say"), {});
  }

  void gpus() {
    if (!setting_.has_gpus || gpus_.known == 0) return;
    if (gpus_.used == 0) {
      add("gpus-idle", fmt::format("{} given, none of them in use", counted(gpus_.known, "GPU")),
          "the job does not use GPUs, or is not that far yet",
          {"ask the framework whether it sees them: `torch.cuda.is_available()`, "
           "`jax.devices()`, `tf.config.list_physical_devices('GPU')`; `mlenv check` says why not",
           "if it needs none: `--gpus none` leaves them to others"});
      return;
    }
    if (!gpus_.idle.empty()) {
      add("gpus-unused",
          fmt::format("{} of {} in use; idle: {}", gpus_.used, counted(gpus_.known, "GPU"),
                      join(gpus_.idle, ", ")),
          "the job runs on some of its GPUs alone",
          {fmt::format("a process for each GPU: `torchrun --nproc-per-node {}`, "
                       "`tf.distribute.MirroredStrategy`, `jax.pmap` or sharding",
                       gpus_.known),
           fmt::format("or `--gpus {}`, which leaves the others free", gpus_.used)});
    }
    if (!gpus_.slowed.empty()) {
      add("gpu-slowed",
          fmt::format("GPU {}: clocks kept down by heat, the hardware or its power supply",
                      join(gpus_.slowed, ", ")),
          "the GPUs are slower than they could be, whatever the job does",
          {"whoever looks after the machine: fans, air, power; `nvidia-smi -q -d PERFORMANCE`"});
    }
    if (gpus_.low()) low_gpus();
  }

  void low_gpus() {
    explained_ = true;
    const std::string saw = fmt::format("{}; {}", busy_gpus_text(gpus_), cpus_text(figures_));
    if (stalled(figures_) >= kStalled && waits(saw)) return;
    if (wanted(figures_) >= kBusyCpus * figures_.cpu.usable) {
      add("gpu-waits-for-cpus", saw,
          "the GPUs wait for what the processors prepare, and those are all busy",
          {"prepare the data once and store it ready to use",
           "decode and augment on the GPU (NVIDIA DALI, `torchvision.transforms.v2` on CUDA "
           "tensors)",
           "more processors for the job"});
    } else if (figures_.cpu.busiest_thread >= kThreadBusy) {
      add("gpu-waits-for-loader",
          fmt::format("{}; one thread (`{}`) is busy {} of the time", saw,
                      figures_.cpu.busiest_thread_name, percent(figures_.cpu.busiest_thread)),
          "the GPUs wait for one thread, which loads data or starts kernels",
          {fmt::format("load data beside it: `DataLoader(num_workers={}, pin_memory=True)`, "
                       "`dataset.map(…, num_parallel_calls=tf.data.AUTOTUNE).prefetch(…)`",
                       workers()),
           "if it is the kernels: larger batches, `torch.compile`, CUDA graphs, `jax.jit`"});
    } else {
      add("gpu-low", saw,
          "neither GPUs nor processors are busy, and what is waited for cannot be seen from "
          "outside: small batches, waiting for other ranks, pauses between steps",
          {"a larger batch; fewer `.item()`, prints and checkpoints in the loop",
           "a profiler tells more: `torch.profiler`, `jax.profiler`, `tf.profiler`, `nsys`"});
    }
  }

  int workers() const {
    constexpr double kMost = 16;
    return static_cast<int>(std::clamp(figures_.cpu.usable - 1, 1.0, kMost));
  }

  /// Of jobs without GPUs, or with GPUs that wait. False: what is waited for is not known.
  bool waits(const std::string& saw) {
    struct Kind {
      double share;
      void (Judge::*say)(const std::string& saw);
    };
    std::array kinds = {Kind{figures_.disk, &Judge::waits_for_disk},
                        Kind{figures_.network, &Judge::waits_for_network},
                        Kind{figures_.output, &Judge::waits_for_output},
                        Kind{figures_.pipe, &Judge::waits_for_pipe}};
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const Kind& a, const Kind& b) { return a.share > b.share; });
    // What is waited for most must be most of the waiting that says anything.
    if (kinds.front().share < kStalled / 2 ||
        kinds.front().share < figures_.time + figures_.other) {
      return false;
    }
    (this->*kinds.front().say)(saw);
    return true;
  }

  std::string waited(double share, std::string_view what, const std::string& saw) const {
    const std::string where =
        figures_.waited_at.empty() ? "" : fmt::format(", mostly `{}`", figures_.waited_at);
    return fmt::format("{} of the time nothing ran but waited for {}{}; {}", percent(share), what,
                       where, saw);
  }
  void waits_for_disk(const std::string& saw) {
    add("waits-for-disk", waited(figures_.disk, "files", saw),
        "the job waits for input: files are read more slowly than they are used",
        {"read ahead, in several processes: `DataLoader(num_workers=…, prefetch_factor=…)`, "
         "`dataset.prefetch(tf.data.AUTOTUNE)`",
         "copy the data to a local disk or `/dev/shm` first; many small files into few large "
         "ones (WebDataset, TFRecord, Parquet)"});
  }
  void waits_for_network(const std::string& saw) {
    add("waits-for-network", waited(figures_.network, "the network", saw),
        "the job waits for input, or for other ranks: what comes from the network is slower than "
        "its use",
        {"copy the data here first, or keep a cache of it: `--cache huggingface`",
         "several downloads at a time, read ahead: `DataLoader(num_workers=…)`, "
         "`interleave(…, num_parallel_calls=tf.data.AUTOTUNE)`",
         "of ranks on several machines: whether one of them is slow; what NCCL uses "
         "(`NCCL_DEBUG=INFO`, `--rdma`)"});
  }
  void waits_for_output(const std::string& saw) {
    add("waits-for-output", waited(figures_.output, "its output to be written", saw),
        "the job waits for what it writes: checkpoints, logs, results",
        {"write less often, in a thread beside (`torch.distributed.checkpoint.async_save`, "
         "Orbax), or to a local disk first"});
  }
  void waits_for_pipe(const std::string& saw) {
    add("waits-for-pipe", waited(figures_.pipe, "another process, at a pipe or socket", saw),
        "the job waits for input that another process gives it",
        {"make that process faster, or have several of it: `DataLoader(num_workers=…)`"});
  }

  Advice more_threads() const {
    Advice advice;
    if (!setting_.thread_variables.empty()) {
      advice.push_back(fmt::format(
          "the job's environment limits it: {}; `-e {}={:.0f}`, or leave "
          "it out",
          join(setting_.thread_variables, ", "),
          setting_.thread_variables.front().substr(0, setting_.thread_variables.front().find('=')),
          std::max(figures_.cpu.usable, 1.0)));
    }
    advice.emplace_back(
        "plain Python runs on one processor at a time: `multiprocessing`, "
        "`concurrent.futures.ProcessPoolExecutor`, `joblib`, `n_jobs=-1`");
    advice.push_back(
        fmt::format("work in large arrays (NumPy, PyTorch, JAX), which use all processors; data in "
                    "`DataLoader(num_workers={})`",
                    workers()));
    return advice;
  }

  /// Of a job that has no GPUs, or does not use them.
  void processors() {
    const CpuSample& cpu = figures_.cpu;
    const double wants = wanted(figures_);
    if (wants >= kBusyCpus * cpu.usable) return;
    const std::string saw = cpus_text(figures_);
    if (stalled(figures_) >= kStalled) {
      if (!waits(saw)) unknown_wait(saw);
    } else if (wants >= kOneThreadLeast && wants <= kOneThreadMost) {
      const bool one = cpu.busiest_thread >= kOneOfAll * wants;
      add("one-thread",
          one ? fmt::format("{}; one thread (`{}`) is busy {} of the time", saw,
                            cpu.busiest_thread_name, percent(cpu.busiest_thread))
              : fmt::format("{}; several threads, of which one runs at a time", saw),
          one ? "the job works in one thread, and cannot use more processors"
              : "its threads take turns, as those of Python do: more of them bring nothing",
          more_threads());
    } else if (wants > kOneThreadMost && wants < kFewCpus * cpu.usable) {
      add("few-threads", fmt::format("{}; {:.0f} threads are busy", saw, figures_.busy_threads),
          "the job works in fewer threads than there are processors", more_threads());
    }
  }

  void unknown_wait(const std::string& saw) {
    const bool sleeps = figures_.time > figures_.other;
    add("waits", fmt::format("{} of the time nothing ran; {}", percent(stalled(figures_)), saw),
        sleeps ? "the job mostly sleeps"
               : "the job waits, and for what cannot be seen from outside: locks, other ranks, a "
                 "device",
        {"a profiler of Python says where: `py-spy dump --pid …`, `python -X faulthandler`"});
  }

  /// Others, and threads of its own, that want the same processors.
  void rivals() {
    const CpuSample& cpu = figures_.cpu;
    const double wants = wanted(figures_);
    if (quota_ || cpu.queued < kQueuedLeast || cpu.queued / wants < kContended) return;
    if (wants >= kTooManyThreads * cpu.usable) {
      add("oversubscribed",
          fmt::format("{:.1f} threads were ready to run on {:.4g} processors", wants, cpu.usable),
          "threads take turns and drive each other's data out of the caches",
          {fmt::format("as many as there are processors in all: `-e OMP_NUM_THREADS={:.0f}` with a "
                       "process for each, `torch.set_num_threads(1)` in workers, fewer "
                       "`num_workers`",
                       std::max(cpu.usable, 1.0)),
           "more processors for the job"});
    } else if (cpu.others >= kOthers * cpu.machine) {
      add("busy-machine",
          fmt::format("{}, {:.1f} more wanted; {:.1f} of the machine's {:.0f} used by others",
                      cpus_text(figures_), cpu.queued, cpu.others, cpu.machine),
          "the machine is busy with something else: the job is slower for that, and not by "
          "itself",
          {"see what else runs (`top`), or run it elsewhere or later"});
    }
  }

  void conclude(bool busy_gpus) {
    const std::string cpus = cpus_text(figures_);
    if (busy_gpus) {
      add("healthy", fmt::format("{}; {}", busy_gpus_text(gpus_), cpus), "the GPUs are in use", {});
    } else if (wanted(figures_) >= kBusyCpus * figures_.cpu.usable) {
      add("healthy", cpus, "the processors are in use", {});
    } else {
      add("partly-busy", cpus,
          "no one cause was seen: phases in which all are busy may alternate with others",
          {"watch one phase alone: `mlenv watch --for 30s`"});
    }
  }

  const Figures& figures_;
  const Setting& setting_;
  GpuSums gpus_;
  std::vector<Finding> found_;
  bool explained_ = false;  ///< how busy the processors are needs no words of its own
  bool quota_ = false;
};

}  // namespace

std::vector<Finding> findings_of(const Figures& figures, const Setting& setting) {
  return Judge{figures, setting}.findings();
}

}  // namespace mlenv::watch
