#pragma once
// One image on one host, while rules look at it.
#include "recipes/compat/architecture.hpp"
#include "runner/check/verdict.hpp"

namespace mlenv {

/// What a finding says beside its rule.
struct Said {
  std::string needed;
  std::string found;
  std::string source;
  std::string remedy;
  std::string title = {};  ///< instead of the rule's
};

class Case {
 public:
  Case(const ImageFacts& of_image, const Facts& of_host, const Use& how);

  const ImageFacts& image() const { return *image_; }
  const Facts& host() const { return *host_; }
  const Use& use() const { return *use_; }

  void find(std::string_view rule, Said said);
  void find(std::string_view rule, Severity severity, Said said);
  /// `how` to get the fact known: empty, as `how_to_know` has it.
  void cannot_judge(std::string_view rule, std::string fact, std::string why, std::string how = {});
  /// Whether it is known; what is not is recorded for the rule.
  template <class T>
  bool knows(std::string_view rule, std::string_view name, const Fact<T>& fact) {
    if (!fact) cannot_judge(rule, std::string(name), fact.source);
    return fact.value.has_value();
  }

  /// Whether the image has anything that uses CUDA.
  const Truth& uses_cuda() const { return uses_cuda_; }
  /// Whether the host has NVIDIA GPUs, with a driver or without.
  const Truth& has_gpu() const { return has_gpu_; }
  /// The image uses CUDA, is to use GPUs, and the host has them. Where that is unknown it is
  /// recorded for rules that decide.
  bool on_gpus(std::string_view rule);
  /// Whether the host's own facts say that they are a container's; false where unknown.
  bool in_container() const;

  /// How many findings and unjudged rules there are so far.
  std::size_t count() const { return verdict_.findings.size() + verdict_.unjudged.size(); }
  /// Its findings, sorted.
  Verdict verdict() &&;

 private:
  const ImageFacts* image_;
  const Facts* host_;
  const Use* use_;
  Truth uses_cuda_;
  Truth has_gpu_;
  Verdict verdict_;
};

/// Worst first, then in the order of rules; each the same only once.
void sort_verdict(Verdict& verdict);

/// What makes a fact known, `host gpus` or `image cpu`, that is not: an action.
std::string how_to_know(const ImageFacts& image, std::string_view fact);

/// `GPU 0, NVIDIA H100 (compute capability 9.0)`
std::string shown(const Gpu& gpu);
/// Of `9.0`; nothing where it is unknown or no number.
std::optional<DeviceCode> architecture_of(const Gpu& gpu);
/// `67 MB`
std::string size_text(std::uint64_t bytes);
/// Whether the fact is what a recipe asks for. An image's labels tell what runs it and what it
/// holds code for, whether its recipe asks or not.
template <class T>
bool is_demand(const Fact<T>& fact) {
  return fact && !fact->empty() && !fact.source.starts_with("label dev.mlenv.");
}
/// A variable of the image; nullptr: it has none of that name.
const std::string* variable_of(const ImageFacts& image, std::string_view name);

}  // namespace mlenv
