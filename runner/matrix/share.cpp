#include "runner/matrix/share.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::matrix {
namespace {

Error too_few_gpus(std::size_t wanted, std::size_t there) {
  return failure("no-device", "{} wanted for each variation, and there {} {}",
                 counted(wanted, "GPU"), there == 1 ? "is" : "are", there);
}

/// How many each gets.
std::size_t gpus_of_each(const Machine& machine, const Asked& asked) {
  const std::size_t there = machine.gpus.size();
  if (asked.gpus.kind == GpuChoice::Kind::count) {
    if (asked.gpus.count > there) throw too_few_gpus(asked.gpus.count, there);
    return asked.gpus.count;
  }
  if (asked.at_once) return std::max<std::size_t>(1, there / *asked.at_once);
  return asked.gpus.kind == GpuChoice::Kind::all ? there : 1;
}

/// So many fit, of which each takes `part`; at least one.
std::size_t fitting(double all, double part) {
  constexpr double kMost = 1024;
  return static_cast<std::size_t>(std::clamp(std::floor(all / part + 1e-9), 1.0, kMost));
}

/// By what the limits say that each needs.
std::size_t fitting_limits(const Machine& machine, const JobLimits& limits) {
  std::optional<std::size_t> most;
  const auto at_most = [&](std::size_t count) { most = std::min(most.value_or(count), count); };
  if (limits.cpus) at_most(fitting(machine.processors, *limits.cpus));
  if (limits.memory_bytes && machine.memory_bytes) {
    at_most(fitting(static_cast<double>(*machine.memory_bytes),
                    static_cast<double>(*limits.memory_bytes)));
  }
  // Memory alone does not say that processors are for several.
  return limits.cpus ? most.value_or(1) : 1;
}

void divide_gpus(const Machine& machine, const Asked& asked, Share& share) {
  const std::size_t there = machine.gpus.size();
  const std::size_t each = gpus_of_each(machine, asked);
  const std::size_t fit = there / each;
  if (!asked.at_once) {
    share.at_once = fit;
    if (asked.limits.cpus || asked.limits.memory_bytes) {
      JobLimits limits = asked.limits;
      limits.cpus = limits.cpus.value_or(machine.processors / static_cast<double>(fit));
      share.at_once = std::min(fit, fitting_limits(machine, limits));
    }
  } else if (*asked.at_once > fit && asked.gpus.kind == GpuChoice::Kind::count) {
    throw usage_error("usage", "`--parallel {}` with `--gpus {}` takes {} GPUs, and there {} {}",
                      *asked.at_once, each, *asked.at_once * each, there == 1 ? "is" : "are", there)
        .hint(fmt::format("`--parallel {}`; without `--gpus {}` they share the GPUs", fit, each));
  }
  share.at_once = std::min(share.at_once, asked.variations);
  share.gpus_are_shared = share.at_once > fit;
  for (std::size_t slot = 0; slot < share.at_once; ++slot) {
    std::vector<CdiName> own;
    for (std::size_t i = 0; i < each; ++i) {
      own.push_back(machine.gpus[(slot * each + i) % there]);
    }
    share.gpus.push_back(std::move(own));
  }
}

}  // namespace

Share divide(const Machine& machine, const Asked& asked) {
  Share share;
  share.at_once = asked.at_once.value_or(fitting_limits(machine, asked.limits));
  if (!machine.gpus.empty()) divide_gpus(machine, asked, share);
  share.at_once = std::min(share.at_once, asked.variations);
  if (share.at_once > 1) {
    const double each = std::min(machine.processors / static_cast<double>(share.at_once),
                                 asked.limits.cpus.value_or(machine.processors));
    share.threads = static_cast<unsigned>(std::max(1.0, std::floor(each + 1e-9)));
  }
  return share;
}

std::vector<std::string> thread_variables(unsigned threads, const std::vector<std::string>& set) {
  constexpr std::array<std::string_view, 11> kNames = {
      "OMP_NUM_THREADS",        "MKL_NUM_THREADS",        "OPENBLAS_NUM_THREADS",
      "BLIS_NUM_THREADS",       "NUMEXPR_NUM_THREADS",    "NUMBA_NUM_THREADS",
      "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "NPROC",
      "RAYON_NUM_THREADS",      "LOKY_MAX_CPU_COUNT"};
  const auto is_set = [&](std::string_view name) {
    return std::find(set.begin(), set.end(), name) != set.end();
  };
  std::vector<std::string> variables;
  if (is_set(kNames.front())) return variables;
  for (const std::string_view name : kNames) {
    if (!is_set(name)) variables.push_back(fmt::format("{}={}", name, threads));
  }
  return variables;
}

}  // namespace mlenv::matrix
