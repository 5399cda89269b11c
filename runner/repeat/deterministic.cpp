#include "runner/repeat/deterministic.hpp"

namespace mlenv {
namespace {

/// The same on every machine: the parts into which a sum is split decide its last bits.
constexpr int kThreads = 4;

constexpr std::string_view kXlaFlag = "--xla_gpu_deterministic_ops";

/// What a name has come to in the end; empty where nobody sets it.
std::string variable_of_run(const LocalRun& run, const std::string& name,
                            const std::map<std::string, std::string>& caller) {
  std::string value;
  const auto take = [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (word == name) {
        if (const auto found = caller.find(name); found != caller.end()) value = found->second;
      } else if (word.starts_with(name + "=")) {
        value = word.substr(name.size() + 1);
      }
    }
  };
  take(run.config.env);
  take(run.devices.env);
  take(run.env);
  return value;
}

}  // namespace

std::vector<std::string> deterministic_variables(std::uint64_t seed) {
  const std::string threads = "=" + std::to_string(kThreads);
  return {"CUBLAS_WORKSPACE_CONFIG=:4096:8",
          "MKL_CBWR=AUTO",
          "MKL_DYNAMIC=FALSE",
          "MKL_NUM_THREADS" + threads,
          "MLENV_SEED=" + std::to_string(seed),
          "NCCL_ALGO=Ring",
          "NCCL_PROTO=Simple",
          "NPROC" + threads,
          "NUMEXPR_NUM_THREADS" + threads,
          "OMP_DYNAMIC=FALSE",
          "OMP_NUM_THREADS" + threads,
          "OPENBLAS_NUM_THREADS" + threads,
          "PYTHONHASHSEED=0",
          "TF_CUDNN_DETERMINISTIC=1",
          "TF_DETERMINISTIC_OPS=1",
          "TF_ENABLE_ONEDNN_OPTS=0",
          "TF_NUM_INTEROP_THREADS" + threads,
          "TF_NUM_INTRAOP_THREADS" + threads};
}

void make_deterministic(LocalRun& run, std::uint64_t seed,
                        const std::map<std::string, std::string>& caller) {
  const fs::path folder = run.scratch / "python";
  make_folders(folder);
  write_file(folder / "sitecustomize.py", python_layer(), /*durable=*/false);
  // Whatever the caller's umask is: the image's user may be another than ours.
  fs::permissions(folder, fs::perms{0755});
  fs::permissions(folder / "sitecustomize.py", fs::perms{0644});
  run.mounts.push_back({folder, std::string(kPythonLayerTarget), true});

  const std::string path = variable_of_run(run, "PYTHONPATH", caller);
  const std::string flags = variable_of_run(run, "XLA_FLAGS", caller);
  const std::vector<std::string> variables = deterministic_variables(seed);
  run.env.insert(run.env.begin(), variables.begin(), variables.end());
  run.env.push_back("PYTHONPATH=" + std::string(kPythonLayerTarget) +
                    (path.empty() ? "" : ":" + path));
  if (flags.find(kXlaFlag) == std::string::npos) {
    run.env.push_back("XLA_FLAGS=" + flags + (flags.empty() ? "" : " ") + std::string(kXlaFlag) +
                      "=true");
  }
}

}  // namespace mlenv
