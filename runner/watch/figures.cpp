// From samples to averages over their steady part.
#include <algorithm>
#include <numeric>

#include "runner/watch/answer.hpp"

namespace mlenv::watch {
namespace {

/// Averages in which long samples weigh more; what some samples do not know is of those that do.
class Mean {
 public:
  void add(std::optional<double> value, double weight) {
    if (!value) return;
    sum_ += *value * weight;
    weight_ += weight;
  }
  std::optional<double> value() const {
    return weight_ > 0 ? std::optional(sum_ / weight_) : std::nullopt;
  }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

template <class Get>
std::optional<double> mean_of(std::span<const Sample> samples, Get&& get) {
  Mean mean;
  for (const Sample& one : samples) mean.add(get(one), one.seconds);
  return mean.value();
}
template <class Get>
double mean_or_none(std::span<const Sample> samples, Get&& get) {
  return mean_of(samples, std::forward<Get>(get)).value_or(0.0);
}

std::optional<double> share_of(const std::optional<std::uint64_t>& part,
                               const std::optional<std::uint64_t>& whole) {
  if (!part || !whole || *whole == 0) return std::nullopt;
  return static_cast<double>(*part) / static_cast<double>(*whole);
}

std::string most_met(std::span<const Sample> samples, std::string LookCounts::*text) {
  std::map<std::string, std::size_t> met;
  for (const Sample& one : samples) {
    if (!(one.looks.*text).empty()) ++met[one.looks.*text];
  }
  const auto most = std::max_element(
      met.begin(), met.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == met.end() ? std::string() : most->first;
}

CpuSample cpu_figures(std::span<const Sample> samples) {
  CpuSample cpu;
  const auto mean = [&](double CpuSample::*member) {
    return mean_or_none(samples, [&](const Sample& one) { return std::optional(one.cpu.*member); });
  };
  cpu.used = mean(&CpuSample::used);
  cpu.usable = mean(&CpuSample::usable);
  cpu.queued = mean(&CpuSample::queued);
  cpu.others = mean(&CpuSample::others);
  cpu.machine = mean(&CpuSample::machine);
  cpu.busiest_thread = mean(&CpuSample::busiest_thread);
  cpu.throttled = mean_of(samples, [](const Sample& one) { return one.cpu.throttled; });
  const auto busiest = std::max_element(
      samples.begin(), samples.end(),
      [](const Sample& a, const Sample& b) { return a.cpu.busiest_thread < b.cpu.busiest_thread; });
  if (busiest != samples.end()) cpu.busiest_thread_name = busiest->cpu.busiest_thread_name;
  return cpu;
}

void look_figures(std::span<const Sample> samples, Figures& figures) {
  std::uint64_t total = 0;
  for (const Sample& one : samples) total += one.looks.total();
  if (total == 0) return;
  const auto part = [&](std::uint64_t LookCounts::*member) {
    std::uint64_t count = 0;
    for (const Sample& one : samples) count += one.looks.*member;
    return static_cast<double>(count) / static_cast<double>(total);
  };
  figures.running = part(&LookCounts::running);
  figures.disk = part(&LookCounts::disk);
  figures.output = part(&LookCounts::output);
  figures.network = part(&LookCounts::network);
  figures.pipe = part(&LookCounts::pipe);
  figures.time = part(&LookCounts::time);
  figures.other = part(&LookCounts::other);
  figures.waited_at = most_met(samples, &LookCounts::waited_at);
}

/// What keeps clocks down and is no one's intention: a power cap is how many GPUs are run.
bool is_slowed(const GpuNow& gpu) {
  return std::any_of(gpu.slowed_by.begin(), gpu.slowed_by.end(),
                     [](const std::string& reason) { return reason != "power-cap"; });
}

void gpu_figures(std::span<const Sample> samples, Figures& figures) {
  constexpr double kPercent = 100;
  struct Means {
    std::optional<std::string> name;
    Mean busy;
    Mean memory;
    Mean slowed;
  };
  std::map<std::uint64_t, Means> gpus;
  for (const Sample& sample : samples) {
    if (!sample.gpus) figures.gpus_unknown = sample.gpus_unknown;
    for (const GpuNow& gpu : sample.gpus.value_or(std::vector<GpuNow>{})) {
      Means& means = gpus[gpu.index];
      means.name = gpu.name;
      std::optional<double> busy;
      if (gpu.busy_percent) busy = static_cast<double>(*gpu.busy_percent) / kPercent;
      means.busy.add(busy, sample.seconds);
      means.memory.add(share_of(gpu.memory_used_bytes, gpu.memory_bytes), sample.seconds);
      means.slowed.add(is_slowed(gpu) ? 1.0 : 0.0, sample.seconds);
    }
  }
  if (gpus.empty()) return;
  figures.gpus_unknown.reset();
  figures.gpus.emplace();
  for (const auto& [index, means] : gpus) {
    figures.gpus->push_back({index, means.name, means.busy.value(), means.memory.value(),
                             means.slowed.value().value_or(0.0)});
  }
}

/// One number that tells phases of a run apart: processors and GPUs, each as a share.
double level_of(const Sample& sample) {
  constexpr double kPercent = 100;
  double level =
      sample.cpu.usable > 0 ? (sample.cpu.used + sample.cpu.queued) / sample.cpu.usable : 0.0;
  Mean busy;
  for (const GpuNow& gpu : sample.gpus.value_or(std::vector<GpuNow>{})) {
    if (gpu.busy_percent) busy.add(static_cast<double>(*gpu.busy_percent) / kPercent, 1);
  }
  return level + busy.value().value_or(0.0);
}

}  // namespace

std::size_t steady_from(std::span<const Sample> samples) {
  // The split into two parts, each of one level, that leaves the least squares of differences from
  // them; it counts when it explains most of what varies, and the levels do differ.
  constexpr double kExplains = 0.5;
  constexpr double kDiffers = 0.15;
  const std::size_t count = samples.size();
  std::vector<double> sums(count + 1, 0.0);
  std::vector<double> squares(count + 1, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const double level = level_of(samples[i]);
    sums[i + 1] = sums[i] + level;
    squares[i + 1] = squares[i] + level * level;
  }
  const auto mean = [&](std::size_t from, std::size_t to) {
    return (sums[to] - sums[from]) / static_cast<double>(to - from);
  };
  const auto rest = [&](std::size_t from, std::size_t to) {
    const double level = mean(from, to);
    return squares[to] - squares[from] - level * level * static_cast<double>(to - from);
  };
  if (count < 2) return 0;
  std::size_t best = 0;
  double least = kExplains * rest(0, count);
  for (std::size_t split = 1; split <= count / 2; ++split) {
    const double left = rest(0, split) + rest(split, count);
    const double step = mean(split, count) - mean(0, split);
    if (left < least && (step > kDiffers || step < -kDiffers)) {
      least = left;
      best = split;
    }
  }
  return best;
}

Figures figures_of(std::span<const Sample> samples) {
  Figures figures;
  const std::size_t first = steady_from(samples);
  for (const Sample& one : samples.first(first)) figures.from_seconds += one.seconds;
  const std::span<const Sample> steady = samples.subspan(first);
  figures.samples = steady.size();
  for (const Sample& one : steady) {
    figures.seconds += one.seconds;
    figures.memory_shortages += one.memory.shortages;
  }
  figures.cpu = cpu_figures(steady);
  figures.busy_threads = mean_or_none(
      steady, [](const Sample& one) { return static_cast<double>(one.cpu.busy_threads); });
  look_figures(steady, figures);
  figures.memory_used = mean_of(steady, [](const Sample& one) {
    return share_of(one.memory.group_bytes, one.memory.limit_bytes);
  });
  figures.swapped = mean_or_none(steady, [](const Sample& one) {
    const std::uint64_t all = one.memory.resident_bytes + one.memory.swapped_bytes;
    return share_of(one.memory.swapped_bytes, all);
  });
  figures.major_faults_per_second = mean_or_none(
      steady, [](const Sample& one) { return std::optional(one.memory.major_faults_per_second); });
  figures.read_bytes_per_second =
      mean_of(steady, [](const Sample& one) { return one.io.read_bytes_per_second; });
  figures.received_bytes_per_second =
      mean_of(steady, [](const Sample& one) { return one.io.received_bytes_per_second; });
  gpu_figures(steady, figures);
  return figures;
}

Answer answer_of(std::span<const Sample> samples, const Setting& setting) {
  Answer answer;
  answer.from = "watch";
  answer.figures = figures_of(samples);
  answer.findings = findings_of(*answer.figures, setting);
  return answer;
}

std::vector<std::string> thread_variables_of(const std::vector<std::string>& environment) {
  constexpr std::array<std::string_view, 10> kNames = {
      "OMP_NUM_THREADS",       "MKL_NUM_THREADS",        "OPENBLAS_NUM_THREADS",
      "BLIS_NUM_THREADS",      "NUMEXPR_NUM_THREADS",    "VECLIB_MAXIMUM_THREADS",
      "RAYON_NUM_THREADS",     "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
      "TOKENIZERS_PARALLELISM"};
  std::vector<std::string> found;
  for (const std::string& variable : environment) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) found.push_back(variable);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace mlenv::watch
