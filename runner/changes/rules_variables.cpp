// Variables of the run over those of its image, sorted by what reads them.
#include <algorithm>
#include <array>
#include <map>

#include "recipes/text.hpp"
#include "runner/changes/rules.hpp"

namespace mlenv::changes {
namespace {

/// A name, or with `*` what begins so; and the rule of what reads it.
struct VariableReader {
  std::string_view name;
  std::string_view rule;
};

// The first that fits counts.
constexpr std::array kReaders = std::to_array<VariableReader>({
    {"CUDA_VISIBLE_DEVICES", "visible-gpus"},
    {"NVIDIA_VISIBLE_DEVICES", "visible-gpus"},
    {"CUDA_DEVICE_ORDER", "visible-gpus"},
    {"WORLD_SIZE", "visible-gpus"},
    {"OMP_NUM_THREADS", "threads"},
    {"OMP_THREAD_LIMIT", "threads"},
    {"OMP_PROC_BIND", "threads"},
    {"OMP_PLACES", "threads"},
    {"OMP_WAIT_POLICY", "threads"},
    {"OMP_SCHEDULE", "threads"},
    {"GOMP_*", "threads"},
    {"KMP_*", "threads"},
    {"MKL_NUM_THREADS", "threads"},
    {"MKL_DYNAMIC", "threads"},
    {"OPENBLAS_NUM_THREADS", "threads"},
    {"BLIS_NUM_THREADS", "threads"},
    {"NUMEXPR_*", "threads"},
    {"NUMBA_NUM_THREADS", "threads"},
    {"TF_NUM_*", "threads"},
    {"RAYON_NUM_THREADS", "threads"},
    {"TOKENIZERS_PARALLELISM", "threads"},
    {"NVIDIA_TF32_OVERRIDE", "numeric-variables"},
    {"TORCH_ALLOW_TF32*", "numeric-variables"},
    {"CUBLAS*", "numeric-variables"},
    {"CUDNN_*", "numeric-variables"},
    {"TORCH_CUDNN_*", "numeric-variables"},
    {"PYTHONHASHSEED", "numeric-variables"},
    {"XLA_FLAGS", "numeric-variables"},
    {"LIBTPU_INIT_ARGS", "numeric-variables"},
    {"TF_XLA_FLAGS", "numeric-variables"},
    {"TF_ENABLE_ONEDNN_OPTS", "numeric-variables"},
    {"TF_DETERMINISTIC_OPS", "numeric-variables"},
    {"TF_CUDNN_*", "numeric-variables"},
    {"TF_ENABLE_*", "numeric-variables"},
    {"JAX_ENABLE_X64", "numeric-variables"},
    {"JAX_DEFAULT_MATMUL_PRECISION", "numeric-variables"},
    {"JAX_DEFAULT_PRNG_IMPL", "numeric-variables"},
    {"JAX_THREEFRY_PARTITIONABLE", "numeric-variables"},
    {"ATEN_CPU_CAPABILITY", "numeric-variables"},
    {"ONEDNN_*", "numeric-variables"},
    {"DNNL_*", "numeric-variables"},
    {"MKL_*", "numeric-variables"},
    {"OPENBLAS_*", "numeric-variables"},
    {"NPY_*", "numeric-variables"},
    {"GLIBC_TUNABLES", "numeric-variables"},
    {"NCCL_DEBUG*", "variables"},
    {"NCCL_*", "communication-variables"},
    {"TORCH_NCCL_*", "communication-variables"},
    {"GLOO_*", "communication-variables"},
    {"UCX_*", "communication-variables"},
    {"FI_*", "communication-variables"},
    {"OMPI_*", "communication-variables"},
    {"MASTER_*", "communication-variables"},
    {"PYTORCH_CUDA_ALLOC_CONF", "allocator-variables"},
    {"PYTORCH_ALLOC_CONF", "allocator-variables"},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "allocator-variables"},
    {"XLA_PYTHON_CLIENT_*", "allocator-variables"},
    {"TF_GPU_ALLOCATOR", "allocator-variables"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", "allocator-variables"},
    {"MALLOC_*", "allocator-variables"},
    {"CUDA_LAUNCH_BLOCKING", "execution-variables"},
    {"CUDA_*", "execution-variables"},
    {"TORCHDYNAMO_*", "execution-variables"},
    {"TORCHINDUCTOR_*", "execution-variables"},
    {"TORCH_COMPILE_*", "execution-variables"},
    {"TORCH_*", "execution-variables"},
    {"TRITON_*", "execution-variables"},
    {"JAX_*", "execution-variables"},
    {"TF_*", "execution-variables"},
    {"LD_LIBRARY_PATH", "search-paths"},
    {"LD_PRELOAD", "search-paths"},
    {"PYTHONPATH", "search-paths"},
    {"PYTHONHOME", "search-paths"},
    {"PATH", "search-paths"},
});

/// Names of the surroundings, which no program computes with.
constexpr std::array kSurroundings = std::to_array<std::string_view>(
    {"HOSTNAME", "HOME", "USER", "LOGNAME", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES",
     "EDITOR", "DISPLAY", "SLURM_JOB_ID", "WANDB_RUN_ID", "TMPDIR"});

/// Words in a variable's name that training code reads its settings by.
constexpr std::array kSettings =
    std::to_array<std::string_view>({"SEED", "LR", "EPOCHS", "STEPS", "BATCH", "BATCHSIZE"});

bool fits(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

bool is_setting(std::string_view name) {
  if (name.find("LEARNING_RATE") != std::string_view::npos) return true;
  const std::vector<std::string_view> words = split(name, '_');
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return std::find(kSettings.begin(), kSettings.end(), word) != kSettings.end();
  });
}

std::string_view rule_for(std::string_view name) {
  const auto* found = std::find_if(kReaders.begin(), kReaders.end(),
                                   [&](const VariableReader& one) { return fits(one.name, name); });
  if (found != kReaders.end()) return found->rule;
  if (is_setting(name)) return "arguments";
  const auto* around = std::find(kSurroundings.begin(), kSurroundings.end(), name);
  return around != kSurroundings.end() ? "run-detail" : "variables";
}

using Variables = std::map<std::string, std::optional<std::string>>;

/// What the job saw, as far as it is known: its image's, and the run's over them.
Variables variables_of(const RunRecord& run, bool with_image) {
  Variables out;
  if (with_image && run.environment) {
    for (const RecordedVariable& one : run.environment->env) out[one.name] = one.value;
  }
  for (const RecordedVariable& one : run.start.env) out[one.name] = one.value;
  return out;
}

std::string value_text(const std::optional<std::string>& value) {
  return value.value_or("a value that is not kept");
}

}  // namespace

void variable(Compared& here, const ValueChange& change, std::vector<ValueChange>& others) {
  const std::string_view rule = rule_for(change.name);
  if (rule == "variables") {
    others.push_back(change);
    return;
  }
  here.find(rule, {change.from, change.to, {}, "variable " + change.name});
}

void other_variables(Compared& here, const std::vector<ValueChange>& others) {
  Listing listing;
  for (const ValueChange& one : others) {
    if (one.from) listing.from.push_back(one.name + '=' + *one.from);
    if (one.to) listing.to.push_back(one.name + '=' + *one.to);
  }
  if (!listing.empty()) here.find("variables", listing.said());
}

void variables(Compared& here) {
  if (here.from_run() == nullptr) return;
  const bool with_image = here.installed() != nullptr;
  const Variables from = variables_of(*here.from_run(), with_image);
  const Variables to = variables_of(*here.to_run(), with_image);
  std::set<std::string> names;
  for (const auto& [name, value] : from) names.insert(name);
  for (const auto& [name, value] : to) names.insert(name);
  std::vector<ValueChange> others;
  for (const std::string& name : names) {
    if (tells_variation(here, name)) continue;
    const auto before = from.find(name);
    const auto after = to.find(name);
    const bool in_both = before != from.end() && after != to.end();
    if (in_both && (!before->second || !after->second)) {
      const std::string why = "records do not keep secrets";
      here.leave_open("value of variable " + name,
                      before->second ? std::nullopt : std::optional(why),
                      after->second ? std::nullopt : std::optional(why));
    } else if (!in_both || before->second != after->second) {
      ValueChange change{name, std::nullopt, std::nullopt};
      if (before != from.end()) change.from = value_text(before->second);
      if (after != to.end()) change.to = value_text(after->second);
      variable(here, change, others);
    }
  }
  other_variables(here, others);
}

}  // namespace mlenv::changes
