// Rules about what a run was asked to do and what its image has; and the order of it all.
#include <csignal>

#include <gtest/gtest.h>

#include "tests/unit/runner/changes/moments.hpp"

namespace mlenv::test {
namespace {

template <class Alter>
changes::Changes of_run(Alter&& alter) {
  RunRecord to = whole_run();
  alter(to);
  return between(whole_run(), to);
}
template <class Alter>
std::string rules_of_run(Alter&& alter) {
  return rules_in(of_run(alter));
}
std::string rules_with_variable(const char* name, const char* value) {
  return rules_of_run([&](RunRecord& run) { run.start.env.push_back({name, value}); });
}
std::string with_argv(std::vector<std::string> argv) {
  return rules_of_run([&](RunRecord& run) { run.start.argv = std::move(argv); });
}
/// Another version of a package is in another image.
std::string with_package(const char* name, const char* version) {
  return rules_of_run([&](RunRecord& run) {
    run.start.image.digest = Digest::of("other").str();
    for (auto* packages : {&run.environment->wheels, &run.environment->debs}) {
      for (RecordedPackage& one : *packages) {
        if (one.name == name) one.version = version;
      }
    }
  });
}

TEST(ChangesOfRuns, AreNoneBetweenEqualOnes) {
  const changes::Changes found = between(whole_run(), whole_run());
  EXPECT_EQ(rules_in(found), "");
  EXPECT_FALSE(found.differ());
  // A value that is not kept is not known to be the same.
  EXPECT_EQ(open_in(found), "value of variable HF_TOKEN");
}

/// One variation: its value in variable, command and folder, as `mlenv run --matrix` records it.
RunRecord matrix_variation(const char* matrix, const char* value) {
  RunRecord run = whole_run();
  run.start.variation =
      RecordedVariation{matrix, 1, 2, {{"lr", value}, {"HF_TOKEN", std::nullopt}}, "/m/a", "/m"};
  run.start.env.push_back({"lr", value});
  run.start.env.push_back({"MLENV_VARIATION", value});
  run.start.env.push_back({"MLENV_MATRIX", matrix});
  run.start.argv = {"python", "train.py", "--lr", value};
  run.start.mounts.push_back({std::string("/m/") + value, "/output", false});
  return run;
}

TEST(ChangesOfRuns, OfOneMatrixAreItsParameters) {
  RunRecord to = matrix_variation("one", "0.2");
  to.end->seconds *= 2;  // it explains whatever came of it
  const changes::Changes found = between(matrix_variation("one", "0.1"), to);
  EXPECT_EQ(rules_in(found), "parameters");
  EXPECT_EQ(finding(found, "parameters").what, "parameter lr");
  EXPECT_EQ(finding(found, "parameters").from, "0.1");
  EXPECT_EQ(finding(found, "parameters").to, "0.2");
  EXPECT_NE(open_in(found).find("parameter HF_TOKEN"), std::string::npos);
  // The commands of two matrices may differ otherwise, too.
  EXPECT_EQ(rules_in(between(matrix_variation("one", "0.1"), matrix_variation("two", "0.2"))),
            "parameters arguments");
  // One that is none has variables and arguments like any other.
  RunRecord single = matrix_variation("one", "0.2");
  single.start.variation.reset();
  EXPECT_EQ(rules_in(between(matrix_variation("one", "0.1"), single)).find("parameters"),
            std::string::npos);
}

TEST(ChangesOfRuns, Options) {
  const auto options = [](auto&& alter) {
    return rules_of_run([&](RunRecord& run) { alter(run.start.options); });
  };
  static constexpr std::uint64_t kGib = 1U << 30U;
  EXPECT_EQ(options([](JobOptions& one) { one.limits.memory_bytes = kGib; }), "run-memory");
  EXPECT_EQ(options([](JobOptions& one) { one.limits.memory_swap_bytes = kGib; }), "run-options");
  EXPECT_EQ(options([](JobOptions& one) { one.limits.unlimited_swap = true; }), "run-options");
  EXPECT_EQ(options([](JobOptions& one) { one.shm_bytes = kGib; }), "run-shared-memory");
  EXPECT_EQ(options([](JobOptions& one) { one.limits.pids = 100; }), "run-processes");
  EXPECT_EQ(options([](JobOptions& one) {
              one.ulimits = {{"nofile", 1024, 1024}};
            }),
            "run-ulimits");
  EXPECT_EQ(options([](JobOptions& one) { one.limits.cpus = 1.5; }), "run-processors");
  EXPECT_EQ(options([](JobOptions& one) { one.limits.cpuset = "0-3"; }), "run-processors");
  EXPECT_EQ(options([](JobOptions& one) { one.network = "none"; }), "run-network");
  EXPECT_EQ(options([](JobOptions& one) { one.user = "1000"; }), "run-user");
  EXPECT_EQ(options([](JobOptions& one) { one.read_only = true; }), "run-read-only");
  EXPECT_EQ(options([](JobOptions& one) { one.rdma = true; }), "run-rdma");
  EXPECT_EQ(options([](JobOptions& one) { one.hostname = "h"; }), "run-options");
  EXPECT_EQ(options([](JobOptions& one) { one.labels = {{"k", "v"}}; }), "");
  RunRecord limited = whole_run();
  limited.start.options.limits.memory_bytes = kGib;
  const changes::Change freed = finding(between(limited, whole_run()), "run-memory");
  EXPECT_EQ(freed.weight, changes::Weight::note);  // more of it breaks nothing
  EXPECT_EQ(freed.from, "--memory 1.1 GB");
  EXPECT_EQ(freed.to, "--memory none");
}

TEST(ChangesOfRuns, FilesThatAnotherRunKept) {
  const auto layer = [](RecordedLayer one) {
    return rules_of_run([&](RunRecord& run) { run.start.layer = std::move(one); });
  };
  EXPECT_EQ(layer({"a", "20260301-120000-0fa4f1", true}), "kept-files");
  EXPECT_EQ(layer({"a", "20260301-120000-0fa4f1", false}), "kept-files");
  EXPECT_EQ(layer({"a", std::nullopt, true}), "");  // it began with the image alone
  const auto two = [](const RecordedLayer& from, const RecordedLayer& to) {
    RunRecord first = whole_run();
    RunRecord second = whole_run();
    first.start.layer = from;
    second.start.layer = to;
    const changes::Changes all = between(first, second);
    return std::any_of(all.found.begin(), all.found.end(),
                       [](const auto& one) { return one.rule == "kept-files"; });
  };
  EXPECT_FALSE(two({"a", "one", false, 2}, {"a", "two", false, 2}));  // one layer by two names
  EXPECT_TRUE(two({"a", "one", false, 2}, {"a", "one", false, 3}));   // written in between
  EXPECT_TRUE(two({"a", "one", false, 2}, {"b", "two", false, 2}));
}

TEST(ChangesOfRuns, Code) {
  const auto code = [](auto&& alter) {
    return rules_of_run([&](RunRecord& run) { alter(*run.code); });
  };
  EXPECT_EQ(code([](CodeState& one) { one.commit = known<std::string>("2e2e", "git"); }), "code");
  EXPECT_EQ(
      code([](CodeState& one) { one.changed_digest = known<std::string>("sha256:7", "git"); }),
      "code");
  EXPECT_EQ(code([](CodeState& one) { one.branch = known<std::string>("try", "git"); }), "");
  const changes::Changes none = of_run([](RunRecord& run) { run.code.reset(); });
  EXPECT_EQ(rules_in(none), "");
  EXPECT_EQ(open_in(none), "code, value of variable HF_TOKEN");
}

TEST(ChangesOfRuns, FilesBetweenTwoCommits) {
  RunRecord to = whole_run();
  to.code->commit = known<std::string>("2e2e", "git");
  const auto with = [&](std::vector<std::string> files) {
    return changes::changes_between({whole_run(), whole_host(), {}}, {to, whole_host(), {}},
                                    known(std::move(files), "git diff"));
  };
  EXPECT_NE(finding(with({"a.py"}), "code").effect.find("a.py"), std::string::npos);
  EXPECT_EQ(rules_in(with({})), "code=note");  // commits of the same content
}

TEST(ChangesOfRuns, Command) {
  EXPECT_EQ(with_argv({"python", "train.py", "--lr", "0.2", "--output-dir", "/out/a"}),
            "arguments");
  EXPECT_EQ(with_argv({"python", "train.py", "--lr=0.1", "--output-dir", "/out/b"}),
            "output-arguments");
  EXPECT_EQ(with_argv({"python", "train.py", "--output-dir", "/out/a", "--lr", "0.1"}), "");
  EXPECT_EQ(with_argv({"python", "eval.py", "--lr", "0.1", "--output-dir", "/out/a"}), "program");
  EXPECT_EQ(with_argv({}), "program");
  EXPECT_EQ(with_argv({"python", "train.py", "--lr", "-0.1", "--output-dir", "/out/a"}),
            "arguments");
}

TEST(ChangesOfRuns, Mounts) {
  const auto mounts = [](auto&& alter) {
    return rules_of_run([&](RunRecord& run) { alter(run.start.mounts); });
  };
  using Mounts = std::vector<RecordedMount>;
  EXPECT_EQ(mounts([](Mounts& all) { all[0].source = "/data/v2"; }), "data-mount");
  EXPECT_EQ(mounts([](Mounts& all) { all[0].source = "/scratch/v1"; }), "data-path");
  EXPECT_EQ(mounts([](Mounts& all) { all[1].source = "/home/b/other"; }), "data-path");
  EXPECT_EQ(mounts([](Mounts& all) { all[0].read_only = false; }), "mounts");
  EXPECT_EQ(mounts([](Mounts& all) { all.pop_back(); }), "mounts");
}

TEST(ChangesOfRuns, Settings) {
  EXPECT_EQ(rules_of_run([](RunRecord& run) { run.start.devices.pop_back(); }), "gpu-count");
  EXPECT_EQ(rules_of_run([](RunRecord& run) { run.start.devices.back() = "nvidia.com/gpu=5"; }),
            "");
  EXPECT_EQ(rules_of_run([](RunRecord& run) { run.start.workdir = "/w"; }), "workdir");
  EXPECT_EQ(rules_of_run([](RunRecord& run) { run.start.runtime = "crun"; }), "runtime");
  EXPECT_EQ(rules_of_run([](RunRecord& run) { run.start.checked = false; }), "not-checked");
  EXPECT_EQ(rules_of_run([](RunRecord& run) { run.start.mlenv = "9.9.9"; }), "mlenv");
  EXPECT_EQ(rules_of_run([](RunRecord& run) { run.state = "lost"; }), "outcome");
}

TEST(ChangesOfRuns, AVirtualMachine) {
  RunRecord emulated = whole_run();
  emulated.vm = VmUse{"tcg", "no /dev/kvm", "q35", "6.1.0", "sha256:0", std::uint64_t{1} << 30U, 2};
  RunRecord real = emulated;
  real.vm->accelerator = "kvm";
  EXPECT_EQ(rules_in(between(real, emulated)), "emulation");
  EXPECT_EQ(rules_in(between(whole_run(), emulated)), "emulation vm");
  EXPECT_EQ(rules_in(between(whole_run(), real)), "vm");
  RunRecord larger = real;
  larger.vm->memory_bytes *= 2;
  EXPECT_EQ(rules_in(between(real, larger)), "vm");
}

TEST(ChangesOfRuns, Variables) {
  EXPECT_EQ(rules_with_variable("NVIDIA_TF32_OVERRIDE", "0"), "numeric-variables");
  EXPECT_EQ(rules_with_variable("MKL_CBWR", "AVX2"), "numeric-variables");
  EXPECT_EQ(rules_with_variable("MKL_NUM_THREADS", "1"), "threads");
  EXPECT_EQ(rules_with_variable("CUDA_VISIBLE_DEVICES", "0"), "visible-gpus");
  EXPECT_EQ(rules_with_variable("NCCL_P2P_DISABLE", "1"), "communication-variables");
  EXPECT_EQ(rules_with_variable("NCCL_DEBUG", "INFO"), "variables");
  EXPECT_EQ(rules_with_variable("CUDA_LAUNCH_BLOCKING", "1"), "execution-variables");
  EXPECT_EQ(rules_with_variable("PYTORCH_ALLOC_CONF", "x"), "allocator-variables");
  EXPECT_EQ(rules_with_variable("LD_LIBRARY_PATH", "/x"), "search-paths");
  EXPECT_EQ(rules_with_variable("RANDOM_SEED", "3"), "arguments");
  EXPECT_EQ(rules_with_variable("EDITOR", "vi"), "");
  EXPECT_EQ(rules_with_variable("TEAM", "x"), "variables");
  // The run's own stand over the image's.
  EXPECT_EQ(rules_with_variable("PATH", "/opt/venv/bin:/usr/bin"), "");
}

TEST(ChangesOfRuns, Packages) {
  EXPECT_EQ(with_package("torch", "2.10.0"), "framework");
  EXPECT_EQ(with_package("nvidia-cudnn-cu12", "9.15.1.9"), "cudnn");
  EXPECT_EQ(with_package("nvidia-nccl-cu12", "2.28.3"), "nccl");
  EXPECT_EQ(with_package("nvidia-cublas-cu12", "12.9.1.4"), "cuda-libraries");
  EXPECT_EQ(with_package("nvidia-cuda-runtime-cu12", "12.9.79"), "cuda-release cuda-libraries");
  EXPECT_EQ(with_package("numpy", "2.4.0"), "numeric-packages");
  EXPECT_EQ(with_package("tqdm", "5"), "python-packages");
  EXPECT_EQ(with_package("libc6", "2.36-9+deb12u14"), "system-libraries");
  EXPECT_EQ(with_package("libssl3", "3.0.17-1~deb12u3"), "base-updates");
  EXPECT_EQ(with_package("less", "590-3"), "debian-packages");
  EXPECT_EQ(with_package("python3.11-minimal", "3.11.9-1"), "python debian-packages");
}

TEST(ChangesOfRuns, Image) {
  EXPECT_EQ(with_package("none", ""), "image-files");
  const changes::Changes gone = of_run([](RunRecord& run) {
    run.start.image.digest = Digest::of("other").str();
    run.environment.reset();
  });
  EXPECT_EQ(rules_in(gone), "image");
  EXPECT_EQ(open_in(gone), "packages of the image, value of variable HF_TOKEN");
  EXPECT_EQ(gone.open.front().to, "gone");
  EXPECT_EQ(gone.open.front().from, std::nullopt);
}

TEST(ChangesOfRuns, ASettingOfTheImage) {
  EnvironmentDiff installed;
  installed.values = {{"run step 1", "make", "make -j"}, {"env OMP_NUM_THREADS", "1", "2"}};
  EXPECT_EQ(rules_in(changes::changes_in(installed, {})), "threads image-settings");
}

TEST(ChangesOfRuns, WithoutFactsTheHostIsUnknown) {
  const changes::Changes found = of_run([](RunRecord& run) { run.facts.reset(); });
  EXPECT_EQ(rules_in(found), "");
  EXPECT_EQ(open_in(found), "host, value of variable HF_TOKEN");
}

// --- The order

changes::Changes ending(std::uint64_t signal, std::uint64_t status) {
  return of_run([&](RunRecord& run) {
    run.state = signal != 0 ? "killed" : "failed";
    run.end->exit_code = status;
    if (signal != 0) run.end->signal = signal;
    run.start.argv[3] = "0.2";
    run.facts->storage.shared_memory.size_bytes.value = 1U << 20U;
    run.facts->memory.limit_bytes.value = Limit{1U << 30U};
    run.facts->cpu.flags.value->pop_back();
  });
}

TEST(ChangesOfRuns, TheEndChooses) {
  EXPECT_EQ(ending(SIGBUS, 135).found.front().rule, "shared-memory");
  EXPECT_EQ(ending(SIGKILL, 137).found.front().rule, "memory-limit");
  EXPECT_EQ(ending(SIGILL, 132).found.front().rule, "cpu-instructions");
  // A shell in between makes a status of the signal.
  EXPECT_EQ(ending(0, 132).found.front().rule, "cpu-instructions");
  EXPECT_EQ(ending(0, 132).likely()->rule, "cpu-instructions");
  EXPECT_EQ(ending(SIGILL, 132).symptom, changes::Symptom::illegal_instruction);
  // Several that break it: nobody can say which.
  EXPECT_EQ(ending(0, 1).likely(), nullptr);
  EXPECT_EQ(ending(0, 1).symptom_text, "the second failed with status 1");
}

TEST(ChangesOfRuns, SlowerIsExplainedBySpeedFirst) {
  const auto slower = [](double seconds) {
    return of_run([&](RunRecord& run) {
      run.end->seconds = seconds;
      run.facts->time.clock_source.value = "hpet";
      run.facts->limits.open_files_soft.value = Limit{1024};
    });
  };
  EXPECT_EQ(rules_in(slower(7200)), "clock-source open-files");
  EXPECT_EQ(slower(7200).likely()->rule, "clock-source");
  EXPECT_TRUE(slower(7200).likely()->explains);
  EXPECT_EQ(slower(7200).symptom_text, "the second took 2.0 times as long");
  EXPECT_EQ(rules_in(slower(3700)), "open-files clock-source");
}

TEST(ChangesOfRuns, NoHeadlineWhereAWholePartIsUnknown) {
  const auto unknown_code = [](int signal) {
    return of_run([&](RunRecord& run) {
      run.code.reset();
      run.facts->memory.limit_bytes.value = Limit{1U << 30U};
      if (signal != 0) run.end->signal = static_cast<std::uint64_t>(signal);
    });
  };
  EXPECT_EQ(rules_in(unknown_code(0)), "memory-limit");
  EXPECT_EQ(unknown_code(0).likely(), nullptr);
  EXPECT_EQ(unknown_code(SIGKILL).likely()->rule, "memory-limit");
}

TEST(ChangesOfRuns, ANoteIsNoHeadline) {
  EXPECT_EQ(of_run([](RunRecord& run) { run.start.mlenv = "9"; }).likely(), nullptr);
}

TEST(ChangesOfRuns, EveryRuleSaysWhatItKnows) {
  for (const changes::Rule& one : changes::rules()) {
    if (one.weight == changes::Weight::incidental) continue;
    EXPECT_FALSE(one.effect.empty() || one.source.empty() || one.remedy.empty()) << one.id;
  }
}

TEST(RunEnvironmentOfAnImage, KeepsNoSecrets) {
  Environment installed;
  installed.platform = "linux/amd64";
  installed.debs.push_back({"libc6", "2.36", "amd64", 3, Digest::of("x"), "pool/x", false});
  const RunEnvironment recorded =
      run_environment(installed, {"A=1", "HF_TOKEN=x", "INDEX=https://me:word@host/", "EMPTY"});
  const std::vector<RecordedVariable> expected = {
      {"A", "1"}, {"EMPTY", ""}, {"HF_TOKEN", std::nullopt}, {"INDEX", "https://***@host/"}};
  EXPECT_EQ(recorded.env, expected);
  EXPECT_EQ(environment_of(recorded).debs.front().name, "libc6");
  EXPECT_EQ(environment_of(recorded).debs.front().architecture, "amd64");
}

}  // namespace
}  // namespace mlenv::test
