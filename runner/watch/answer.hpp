#pragma once
// The plain answer: were all processors and GPUs used, or was the job waiting, and what to try.
//
// Judged is the steady part of what was seen (steady_from), by averages over it. Rules look at what
// the job wants (processors used, and threads that were ready and had none) rather than at what it
// got, so that a job beside others is judged as it would be alone; that others took its processors
// is a finding of its own. Names of rules are stable; docs/watch.md has a row for each.
//
// Thresholds are ours: chosen so that each rule speaks well before a person would call the run
// normal, with room for the noise of a shared machine; tests hold each rule to both sides of them.
#include <span>

#include "runner/watch/sample.hpp"

namespace mlenv::watch {

struct GpuFigures {
  std::uint64_t index = 0;
  std::optional<std::string> name;
  std::optional<double> busy;         ///< share of the time that any kernel ran
  std::optional<double> memory_used;  ///< share
  double slowed = 0;  ///< share of samples in which heat or the hardware kept its clocks down
  friend bool operator==(const GpuFigures&, const GpuFigures&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("index", self.index);
    visit("name", self.name);
    visit("busy", self.busy);
    visit("memory_used", self.memory_used);
    visit("slowed", self.slowed);
  }
};

/// Averages over the steady part. Shares are from 0 to 1.
struct Figures {
  double from_seconds = 0;  ///< after the watch began: what was before it is not judged
  double seconds = 0;
  std::uint64_t samples = 0;
  CpuSample cpu;
  double busy_threads = 0;
  /// Shares of the looks: `running`, and if nothing ran what was waited for.
  double running = 1;
  double disk = 0;
  double output = 0;
  double network = 0;
  double pipe = 0;
  double time = 0;
  double other = 0;
  std::string waited_at;
  std::optional<double> memory_used;  ///< share of the limit
  std::uint64_t memory_shortages = 0;
  double swapped = 0;  ///< share of its memory
  double major_faults_per_second = 0;
  std::optional<double> read_bytes_per_second;
  std::optional<double> received_bytes_per_second;
  std::optional<std::vector<GpuFigures>> gpus;
  std::optional<std::string> gpus_unknown;
  friend bool operator==(const Figures&, const Figures&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("from_seconds", self.from_seconds);
    visit("seconds", self.seconds);
    visit("samples", self.samples);
    visit("cpu", self.cpu);
    visit("busy_threads", self.busy_threads);
    visit("running", self.running);
    visit("disk", self.disk);
    visit("output", self.output);
    visit("network", self.network);
    visit("pipe", self.pipe);
    visit("time", self.time);
    visit("other", self.other);
    visit("waited_at", self.waited_at);
    visit("memory_used", self.memory_used);
    visit("memory_shortages", self.memory_shortages);
    visit("swapped", self.swapped);
    visit("major_faults_per_second", self.major_faults_per_second);
    visit("read_bytes_per_second", self.read_bytes_per_second);
    visit("received_bytes_per_second", self.received_bytes_per_second);
    visit("gpus", self.gpus);
    visit("gpus_unknown", self.gpus_unknown);
  }
};

/// What is known of the run besides.
struct Setting {
  bool has_gpus = false;  ///< it was given some
  /// `OMP_NUM_THREADS=1`: variables of the job that say how many threads there may be.
  std::vector<std::string> thread_variables;
};

struct Finding {
  std::string rule;
  std::string saw;    ///< what was seen, with figures
  std::string means;  ///< may be empty
  std::vector<std::string> advice;
  friend bool operator==(const Finding&, const Finding&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rule", self.rule);
    visit("saw", self.saw);
    visit("means", self.means);
    visit("try", self.advice);
  }
};

/// Schema mlenv.watch/1, kind `answer`.
struct Answer {
  std::string from;  ///< `watch`: samples; `record`: the totals of a run that has ended
  std::optional<Figures> figures;  ///< of `watch`
  std::vector<Finding> findings;   ///< never empty; what matters most is first
  friend bool operator==(const Answer&, const Answer&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("from", self.from);
    visit("figures", self.figures);
    visit("findings", self.findings);
  }
};

/// Index of the first sample of the steady part: where use of processors and GPUs last changed for
/// good within the first half; 0: it did not. Imports, compilation and warm-up lie before it.
std::size_t steady_from(std::span<const Sample> samples);
Figures figures_of(std::span<const Sample> samples);
std::vector<Finding> findings_of(const Figures& figures, const Setting& setting);
Answer answer_of(std::span<const Sample> samples, const Setting& setting);

/// Of those in `environment` (`K=V`).
std::vector<std::string> thread_variables_of(const std::vector<std::string>& environment);

/// All that a record knows of a run that nobody watched.
struct Totals {
  double seconds = 0;
  double cpu_seconds = 0;
  std::optional<double> usable_cpus;
  bool has_gpus = false;
};
Answer answer_of(const Totals& totals);

}  // namespace mlenv::watch
