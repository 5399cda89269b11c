// Each rule at both sides of its threshold, on figures; and healthy jobs, which get no advice.
#include <gtest/gtest.h>

#include <random>

#include "runner/watch/answer.hpp"

namespace mlenv::watch {
namespace {

constexpr double kCpus = 8;

/// A job that keeps all processors busy.
Figures all_busy() {
  Figures figures;
  figures.seconds = 30;
  figures.samples = 30;
  figures.cpu.used = 7.8;
  figures.cpu.usable = kCpus;
  figures.cpu.machine = kCpus;
  figures.cpu.busiest_thread = 0.98;
  figures.cpu.busiest_thread_name = "python";
  figures.busy_threads = 8;
  return figures;
}

/// One that keeps but one busy.
Figures one_busy() {
  Figures figures = all_busy();
  figures.cpu.used = 1.0;
  figures.busy_threads = 1;
  return figures;
}

/// One that waits.
Figures waiting(double Figures::*what, double share = 0.8) {
  Figures figures = all_busy();
  figures.cpu.used = 0.2;
  figures.cpu.busiest_thread = 0.2;
  figures.busy_threads = 0;
  figures.running = 1 - share;
  figures.*what = share;
  return figures;
}

Figures with_gpus(Figures figures, const std::vector<double>& busy) {
  figures.gpus.emplace();
  for (const double one : busy) {
    figures.gpus->push_back({figures.gpus->size(), "Stand-in GPU", one, 0.5, 0});
  }
  return figures;
}

std::string rules_of(const Figures& figures, bool has_gpus = false) {
  std::string rules;
  const Setting setting{has_gpus || figures.gpus.has_value(), {}};
  for (const Finding& one : findings_of(figures, setting)) {
    rules += (rules.empty() ? "" : " ") + one.rule;
  }
  return rules;
}

TEST(WatchRules, healthy_jobs_get_no_advice) {
  const std::vector<Finding> found = findings_of(all_busy(), {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rule, "healthy");
  EXPECT_TRUE(found[0].advice.empty());
  EXPECT_EQ(found[0].saw, "7.8 of 8 processors in use");
}

TEST(WatchRules, too_short) {
  Figures figures = one_busy();
  figures.seconds = 2.9;
  EXPECT_EQ(rules_of(figures), "too-short");
  figures.seconds = 3;
  EXPECT_EQ(rules_of(figures), "one-thread");
  figures.samples = 2;
  EXPECT_EQ(rules_of(figures), "too-short");
}

TEST(WatchRules, one_thread) {
  EXPECT_EQ(rules_of(one_busy()), "one-thread");
  Figures figures = one_busy();
  figures.cpu.usable = figures.cpu.machine = 1;
  EXPECT_EQ(rules_of(figures), "healthy") << "there is but one processor";
  figures = one_busy();
  figures.cpu.usable = figures.cpu.machine = 2;
  EXPECT_EQ(rules_of(figures), "one-thread");
  // On a machine that others keep busy it wants no more than one all the same.
  figures.cpu.used = 0.6;
  figures.cpu.queued = 0.4;
  figures.cpu.others = 1.4;
  EXPECT_EQ(rules_of(figures), "one-thread busy-machine");
  const Setting setting{false, {"MKL_NUM_THREADS=1", "OMP_NUM_THREADS=1"}};
  const Finding found = findings_of(one_busy(), setting).front();
  EXPECT_NE(found.advice.front().find("MKL_NUM_THREADS=1, OMP_NUM_THREADS=1"), std::string::npos);
  EXPECT_NE(found.advice.front().find("`-e MKL_NUM_THREADS=8`"), std::string::npos);
}

TEST(WatchRules, threads_that_take_turns_are_one) {
  Figures figures = one_busy();
  figures.cpu.busiest_thread = 0.3;
  const Finding found = findings_of(figures, {}).front();
  EXPECT_EQ(found.rule, "one-thread");
  EXPECT_NE(found.saw.find("one runs at a time"), std::string::npos);
}

TEST(WatchRules, few_threads) {
  Figures figures = all_busy();
  figures.cpu.used = 3.0;
  figures.busy_threads = 3;
  EXPECT_EQ(rules_of(figures), "few-threads");
  figures.cpu.used = 5.0;
  EXPECT_EQ(rules_of(figures), "partly-busy");
  figures.cpu.used = 5.7;
  EXPECT_EQ(rules_of(figures), "healthy");
}

TEST(WatchRules, what_is_waited_for) {
  EXPECT_EQ(rules_of(waiting(&Figures::disk)), "waits-for-disk");
  EXPECT_EQ(rules_of(waiting(&Figures::network)), "waits-for-network");
  EXPECT_EQ(rules_of(waiting(&Figures::output)), "waits-for-output");
  EXPECT_EQ(rules_of(waiting(&Figures::pipe)), "waits-for-pipe");
  EXPECT_EQ(rules_of(waiting(&Figures::time)), "waits");
  EXPECT_EQ(rules_of(waiting(&Figures::other)), "waits");
  Figures figures = waiting(&Figures::disk, 0.4);
  figures.waited_at = "/data/train.bin";
  EXPECT_NE(findings_of(figures, {}).front().saw.find("mostly `/data/train.bin`"),
            std::string::npos);
  // Less than is worth a sentence.
  EXPECT_EQ(rules_of(waiting(&Figures::disk, 0.25)), "partly-busy");
  // Of several the one that is waited for most.
  figures.network = 0.3;
  figures.running = 0.3;
  EXPECT_EQ(rules_of(figures), "waits-for-disk");
  figures.other = 0.3;
  figures.time = 0.2;
  figures.running = 0;
  EXPECT_EQ(rules_of(figures), "waits") << "most of the waiting is for what is not known";
}

TEST(WatchRules, waiting_does_not_count_where_all_is_busy) {
  Figures figures = waiting(&Figures::disk, 0.5);
  figures.cpu.used = 7;
  EXPECT_EQ(rules_of(figures), "healthy");
}

TEST(WatchRules, cpu_quota) {
  Figures figures = all_busy();
  figures.cpu.usable = 2;
  figures.cpu.used = 2.0;
  figures.cpu.queued = 4;
  figures.cpu.throttled = 0.9;
  EXPECT_EQ(rules_of(figures), "cpu-quota");
  figures.cpu.throttled = 0.1;
  figures.cpu.queued = 0;
  EXPECT_EQ(rules_of(figures), "healthy");
  figures.cpu.throttled = 0.9;
  figures.cpu.used = 1.5;
  EXPECT_EQ(rules_of(figures), "healthy") << "bursts, not the quota as a whole";
}

TEST(WatchRules, memory_limit) {
  Figures figures = all_busy();
  figures.memory_used = 0.99;
  figures.memory_shortages = 12;
  EXPECT_EQ(rules_of(figures), "memory-limit");
  figures.memory_shortages = 0;
  EXPECT_EQ(rules_of(figures), "healthy");
  figures.memory_shortages = 12;
  figures.memory_used = 0.9;
  EXPECT_EQ(rules_of(figures), "healthy") << "files that were read fill memory, and give it back";
}

TEST(WatchRules, swapping) {
  Figures figures = waiting(&Figures::disk);
  figures.swapped = 0.3;
  figures.major_faults_per_second = 900;
  EXPECT_EQ(rules_of(figures), "swapping waits-for-disk");
  figures.swapped = 0;
  EXPECT_EQ(rules_of(figures), "waits-for-disk") << "mapped files are read by faults, too";
}

TEST(WatchRules, busy_machine) {
  Figures figures = all_busy();
  figures.cpu.used = 4;
  figures.cpu.queued = 4;
  figures.cpu.others = 4;
  EXPECT_EQ(rules_of(figures), "busy-machine");
  figures.cpu.others = 0.5;
  EXPECT_EQ(rules_of(figures), "healthy") << "nobody is there to blame";
  figures = waiting(&Figures::network);
  figures.cpu.queued = 0.1;
  figures.cpu.others = 8;
  EXPECT_EQ(rules_of(figures), "waits-for-network") << "it would not be faster alone";
}

TEST(WatchRules, oversubscribed) {
  Figures figures = all_busy();
  figures.cpu.queued = 24;
  EXPECT_EQ(rules_of(figures), "oversubscribed");
  figures.cpu.queued = 6;
  EXPECT_EQ(rules_of(figures), "healthy");
}

TEST(WatchRules, gpus_that_nobody_uses) {
  EXPECT_EQ(rules_of(with_gpus(all_busy(), {0, 0.01})), "gpus-idle");
  EXPECT_EQ(rules_of(with_gpus(one_busy(), {0, 0.01})), "gpus-idle one-thread");
  EXPECT_EQ(rules_of(with_gpus(one_busy(), {0.95, 0.9, 0, 0})), "gpus-unused");
  const Finding found = findings_of(with_gpus(one_busy(), {0.95, 0, 0.9, 0}), {true, {}}).front();
  EXPECT_EQ(found.saw, "2 of 4 GPUs in use; idle: 1, 3");
}

TEST(WatchRules, busy_gpus_need_few_processors) {
  EXPECT_EQ(rules_of(with_gpus(one_busy(), {0.95, 0.9})), "healthy");
  EXPECT_EQ(rules_of(with_gpus(waiting(&Figures::disk), {0.6})), "healthy");
  Figures beside_others = one_busy();
  beside_others.cpu.queued = 1;
  beside_others.cpu.others = 6;
  EXPECT_EQ(rules_of(with_gpus(beside_others, {0.95})), "healthy");
  EXPECT_EQ(rules_of(with_gpus(beside_others, {0.2})), "gpu-waits-for-loader busy-machine");
}

TEST(WatchRules, gpus_that_wait) {
  EXPECT_EQ(rules_of(with_gpus(one_busy(), {0.2, 0.3})), "gpu-waits-for-loader");
  EXPECT_EQ(rules_of(with_gpus(all_busy(), {0.2, 0.3})), "gpu-waits-for-cpus");
  EXPECT_EQ(rules_of(with_gpus(waiting(&Figures::disk), {0.2})), "waits-for-disk");
  EXPECT_EQ(rules_of(with_gpus(waiting(&Figures::network), {0.2})), "waits-for-network");
  EXPECT_EQ(rules_of(with_gpus(waiting(&Figures::other), {0.2})), "gpu-low");
  Figures figures = one_busy();
  figures.cpu.busiest_thread = 0.4;
  EXPECT_EQ(rules_of(with_gpus(figures, {0.49})), "gpu-low");
  EXPECT_EQ(rules_of(with_gpus(figures, {0.51})), "healthy");
}

TEST(WatchRules, gpu_slowed) {
  Figures figures = with_gpus(one_busy(), {0.95, 0.95});
  figures.gpus->at(1).slowed = 0.5;
  EXPECT_EQ(rules_of(figures), "gpu-slowed");
  EXPECT_NE(findings_of(figures, {true, {}}).front().saw.find("GPU 1:"), std::string::npos);
}

TEST(WatchRules, gpus_of_which_nothing_is_known) {
  Figures figures = one_busy();
  figures.cpu.used = 2.5;
  figures.cpu.usable = 4;
  figures.gpus_unknown = "NVIDIA's driver does not answer";
  const Finding found = findings_of(figures, {true, {}}).front();
  EXPECT_EQ(found.rule, "gpus-unknown");
  EXPECT_NE(found.means.find("does not answer"), std::string::npos);
  EXPECT_EQ(rules_of(all_busy(), true), "gpus-unknown");
  // One thread may be all that busy GPUs need.
  EXPECT_EQ(rules_of(one_busy(), true), "gpus-unknown");
  EXPECT_EQ(rules_of(waiting(&Figures::disk), true), "gpus-unknown");
  Figures limited = one_busy();
  limited.memory_used = 0.99;
  limited.memory_shortages = 12;
  EXPECT_EQ(rules_of(limited, true), "gpus-unknown memory-limit");
  // Of a split GPU NVML tells no use.
  figures.gpus = {{0, "Stand-in GPU", std::nullopt, 0.5, 0}};
  EXPECT_EQ(rules_of(figures), "gpus-unknown");
}

/// Samples of a job: `level` of the usable processors, with noise.
std::vector<Sample> samples_of_job(std::mt19937& random, double cpus, double level,
                                   std::optional<double> gpu) {
  std::normal_distribution<double> noise{0, 0.05};
  std::uniform_int_distribution<int> count{5, 120};
  std::vector<Sample> samples(static_cast<std::size_t>(count(random)));
  for (Sample& sample : samples) {
    sample.seconds = 1 + noise(random) / 10;
    sample.cpu.usable = sample.cpu.machine = cpus;
    sample.cpu.used = std::clamp(cpus * (level + noise(random)), 0.0, cpus);
    sample.cpu.queued = std::abs(noise(random)) * cpus / 10;
    sample.cpu.others = std::abs(noise(random));
    sample.cpu.busiest_thread = std::clamp(0.97 + noise(random), 0.0, 1.0);
    sample.looks.running = 4;
    if (!gpu) continue;
    GpuNow now;
    now.busy_percent = static_cast<std::uint64_t>(100 * std::clamp(*gpu + noise(random), 0.0, 1.0));
    sample.gpus = {now};
  }
  return samples;
}

TEST(WatchRules, random_healthy_jobs_get_no_advice) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random{seed};
    std::uniform_int_distribution<int> cpus{1, 128};
    std::uniform_real_distribution<double> high{0.85, 1.0};
    std::uniform_real_distribution<double> any{0.02, 1.0};
    const bool on_gpu = seed % 2 == 0;
    std::optional<double> gpu;
    if (on_gpu) gpu = high(random);
    const auto samples =
        samples_of_job(random, cpus(random), on_gpu ? any(random) : high(random), gpu);
    const Answer answer = answer_of(samples, {on_gpu, {}});
    ASSERT_EQ(answer.findings.size(), 1U) << "seed " << seed;
    EXPECT_EQ(answer.findings[0].rule, "healthy") << "seed " << seed;
    EXPECT_TRUE(answer.findings[0].advice.empty()) << "seed " << seed;
  }
}

TEST(WatchRules, warm_up_does_not_count) {
  std::mt19937 random{7};
  std::vector<Sample> samples;
  for (const auto& [level, count] : {std::pair{0.12, 8U}, std::pair{0.97, 20U}}) {
    std::vector<Sample> phase = samples_of_job(random, kCpus, level, std::nullopt);
    while (phase.size() < count) phase.push_back(phase.back());
    phase.resize(count);
    samples.insert(samples.end(), phase.begin(), phase.end());
  }
  EXPECT_EQ(steady_from(samples), 8U);
  const Answer answer = answer_of(samples, {});
  EXPECT_EQ(answer.findings[0].rule, "healthy");
  EXPECT_NEAR(answer.figures->from_seconds, 8, 0.5);
  EXPECT_EQ(answer.figures->samples, 20U);
}

TEST(WatchRules, steady_from_of_nothing_and_of_little) {
  EXPECT_EQ(steady_from({}), 0U);
  const std::vector<Sample> one(1);
  EXPECT_EQ(steady_from(one), 0U);
  EXPECT_EQ(answer_of(std::span<const Sample>{}, {}).findings[0].rule, "too-short");
}

TEST(WatchRules, totals_of_a_run_that_nobody_watched) {
  const auto rule = [](double seconds, double cpu_seconds, bool gpus = false) {
    return answer_of(Totals{seconds, cpu_seconds, kCpus, gpus}).findings.front().rule;
  };
  EXPECT_EQ(rule(9, 9), "too-short");
  EXPECT_EQ(rule(100, 790), "healthy");
  EXPECT_EQ(rule(100, 100), "one-thread");
  EXPECT_EQ(rule(100, 250), "few-threads");
  EXPECT_EQ(rule(100, 500), "partly-busy");
  EXPECT_EQ(rule(100, 10), "waits");
  EXPECT_EQ(rule(100, 100, true), "gpus-unknown");
  EXPECT_EQ(answer_of(Totals{100, 100, std::nullopt, false}).findings.front().rule, "too-short");
}

TEST(WatchRules, thread_variables) {
  const std::vector<std::string> expected = {"MKL_NUM_THREADS=2", "OMP_NUM_THREADS=1"};
  EXPECT_EQ(thread_variables_of({"OMP_NUM_THREADS=1", "HOME=/root", "MKL_NUM_THREADS=2"}),
            expected);
}

}  // namespace
}  // namespace mlenv::watch
