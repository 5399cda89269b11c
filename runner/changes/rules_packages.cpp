// What is installed in the image, sorted by what it does.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/changes/rules.hpp"

namespace mlenv::changes {
namespace {

/// A name, or with `*` what begins so; and the rule that it falls under.
struct Sort {
  std::string_view name;
  std::string_view rule;
};

// The first that fits counts.
constexpr std::array kWheels = std::to_array<Sort>({
    {"torch", "framework"},
    {"tensorflow", "framework"},
    {"tensorflow-cpu", "framework"},
    {"tensorflow-intel", "framework"},
    {"jax", "framework"},
    {"jaxlib", "framework"},
    {"jax-cuda*", "framework"},
    {"mxnet*", "framework"},
    {"paddlepaddle*", "framework"},
    {"scikit-learn", "framework"},
    {"nvidia-cudnn*", "cudnn"},
    {"nvidia-nccl*", "nccl"},
    {"nvidia-*", "cuda-libraries"},
    {"cuda-*", "cuda-libraries"},
    {"cupy*", "numeric-packages"},
    {"triton", "numeric-packages"},
    {"pytorch-triton*", "numeric-packages"},
    {"numpy", "numeric-packages"},
    {"scipy", "numeric-packages"},
    {"pandas", "numeric-packages"},
    {"polars", "numeric-packages"},
    {"pyarrow", "numeric-packages"},
    {"numba", "numeric-packages"},
    {"llvmlite", "numeric-packages"},
    {"numexpr", "numeric-packages"},
    {"opt-einsum", "numeric-packages"},
    {"ml-dtypes", "numeric-packages"},
    {"mkl*", "numeric-packages"},
    {"intel-openmp", "numeric-packages"},
    {"xgboost", "numeric-packages"},
    {"lightgbm", "numeric-packages"},
    {"catboost", "numeric-packages"},
    {"torchvision", "numeric-packages"},
    {"torchaudio", "numeric-packages"},
    {"torchdata", "numeric-packages"},
    {"torchao", "numeric-packages"},
    {"torchmetrics", "numeric-packages"},
    {"transformers", "numeric-packages"},
    {"tokenizers", "numeric-packages"},
    {"datasets", "numeric-packages"},
    {"accelerate", "numeric-packages"},
    {"peft", "numeric-packages"},
    {"trl", "numeric-packages"},
    {"diffusers", "numeric-packages"},
    {"timm", "numeric-packages"},
    {"deepspeed", "numeric-packages"},
    {"lightning", "numeric-packages"},
    {"pytorch-lightning", "numeric-packages"},
    {"flash-attn*", "numeric-packages"},
    {"xformers", "numeric-packages"},
    {"bitsandbytes", "numeric-packages"},
    {"apex", "numeric-packages"},
    {"transformer-engine*", "numeric-packages"},
    {"keras", "numeric-packages"},
    {"flax", "numeric-packages"},
    {"optax", "numeric-packages"},
    {"orbax*", "numeric-packages"},
    {"onnxruntime*", "numeric-packages"},
    {"horovod", "numeric-packages"},
    {"mpi4py", "numeric-packages"},
    {"pillow", "numeric-packages"},
    {"opencv-python*", "numeric-packages"},
    {"librosa", "numeric-packages"},
    {"*", "python-packages"},
});

constexpr std::array kDebs = std::to_array<Sort>({
    {"libc6", "system-libraries"},
    {"libgomp1", "system-libraries"},
    {"libgcc-s1", "system-libraries"},
    {"libstdc++6", "system-libraries"},
    {"libgfortran5", "system-libraries"},
    {"libquadmath0", "system-libraries"},
    {"libomp*", "system-libraries"},
    {"libopenblas*", "system-libraries"},
    {"libblas*", "system-libraries"},
    {"liblapack*", "system-libraries"},
    {"libatlas*", "system-libraries"},
    {"libmkl*", "system-libraries"},
    {"libfftw*", "system-libraries"},
    {"libopenmpi*", "system-libraries"},
    {"openmpi*", "system-libraries"},
    {"libucx*", "system-libraries"},
    {"libibverbs1", "system-libraries"},
    {"libcudnn*", "cudnn"},
    {"libnccl*", "nccl"},
    {"libcu*", "base-updates"},
    {"cuda-*", "cuda-libraries"},
    {"lib*", "base-updates"},
    {"openssl", "base-updates"},
    {"ca-certificates", "base-updates"},
    {"base-files", "base-updates"},
    {"*", "debian-packages"},
});

/// Values of locks and images beside the packages: a name, or how it begins.
constexpr std::array kValueRules = std::to_array<Sort>({
    {"platform", "architecture"},
    {"cuda", "cuda-release"},
    {"python", "python"},
    {"interpreter", "python"},
    {"data *", "data-mount"},
    {"glibc", "system-libraries"},
    {"base", "image-settings"},
    {"base image", "image-settings"},
    {"suite", "image-settings"},
    {"distribution", "image-settings"},
    {"run step*", "image-settings"},
    {"workdir", "workdir"},
    {"command", "image-settings"},
    {"entrypoint", "image-settings"},
    {"user", "image-settings"},
    {"source of *", "image-settings"},
    {"*", "image-detail"},
});

template <std::size_t N>
std::string_view rule_in(const std::array<Sort, N>& table, std::string_view name) {
  const auto* found = std::find_if(table.begin(), table.end(), [&](const Sort& one) {
    std::string_view pattern = one.name;
    if (!pattern.ends_with('*')) return pattern == name;
    pattern.remove_suffix(1);
    return name.starts_with(pattern);
  });
  return found->rule;  // the last fits all
}

using Listings = std::map<std::string_view, Listing>;

/// Of Python packages what follows `+deb` decides nothing; `other bytes` of one version count.
void add_package(Listings& out, std::string_view rule, const PackageChange& change) {
  const auto text = [&](const ListedPackage& one) {
    return change.what == PackageChange::What::other_bytes
               ? fmt::format("{} {} ({})", one.name, one.version,
                             one.digest ? one.digest->brief() : "")
               : fmt::format("{} {}", one.name, one.version);
  };
  if (change.from) out[rule].from.push_back(text(*change.from));
  if (change.to) out[rule].to.push_back(text(*change.to));
}

void sort_packages(Listings& out, const EnvironmentDiff& installed) {
  using What = PackageChange::What;
  for (const PackageChange& one : installed.wheels) {
    if (one.what != What::other_record) add_package(out, rule_in(kWheels, one.either().name), one);
  }
  for (const PackageChange& one : installed.debs) {
    if (one.what == What::other_record) continue;
    std::string_view rule = rule_in(kDebs, one.either().name);
    // What only one of the two has is no update.
    const bool both = one.from && one.to;
    if (rule == "base-updates" && !both) rule = "debian-packages";
    add_package(out, rule, one);
  }
}

void sort_values(Compared& here, const ValueChanges& values) {
  constexpr std::string_view kVariable = "env ";
  std::vector<ValueChange> others;
  for (const ValueChange& one : values) {
    if (one.name.starts_with(kVariable)) {
      ValueChange bare = one;
      bare.name.erase(0, kVariable.size());
      variable(here, bare, others);
      continue;
    }
    const std::string_view rule = rule_in(kValueRules, one.name);
    const bool named = rule != "cuda-release" && rule != "python";
    here.find(rule, {one.from, one.to, {}, named ? one.name : std::string{}});
  }
  other_variables(here, others);
}

}  // namespace

void image(Compared& here) {
  if (here.from_run() == nullptr) return;
  const RecordedImage& from = here.from_run()->start.image;
  const RecordedImage& to = here.to_run()->start.image;
  if (from.digest == to.digest) return;
  const auto text = [](const RecordedImage& one) {
    constexpr std::size_t kBrief = 19;  // `sha256:` and twelve digits
    return fmt::format("{} ({})", one.name, one.digest.substr(0, kBrief));
  };
  const Said said{text(from), text(to)};
  if (here.installed() == nullptr) return here.find("image", said);
  const EnvironmentDiff& installed = *here.installed();
  const bool same_packages = installed.wheels.empty() && installed.debs.empty();
  // Another set of packages is another image by itself.
  here.find(same_packages ? "image-files" : "image-detail", said);
}

void packages(Compared& here) {
  if (here.installed() == nullptr) return;
  Listings listings;
  sort_packages(listings, *here.installed());
  for (const auto& [rule, listing] : listings) here.find(rule, listing.said());
  sort_values(here, here.installed()->values);
}

}  // namespace mlenv::changes
