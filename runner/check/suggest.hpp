#pragma once
// What could be done where an image does not run: other builds of its recipe's framework that
// would (as far as recipes/compat knows them), drivers, and which GPUs it serves. Pure, as the
// verdict is: each answer is one of `judge`, on facts with that change made.
#include <optional>
#include <string>
#include <vector>

#include "recipes/recipe_change.hpp"
#include "runner/check/verdict.hpp"

namespace mlenv {

/// The recipe's image as it would be for a host.
struct OnHost {
  const ImageFacts* image = nullptr;
  const Facts* host = nullptr;
};

struct Demand {
  Use use;
  bool strict = false;    ///< what may fail does not do
  bool with_gpu = false;  ///< nor does a CUDA build without a GPU
};
/// Whether the verdict is a yes.
bool serves(const Verdict& verdict, const Demand& demand);

/// A recipe that may be better.
struct Proposal {
  RecipeChange change;
  std::string build;            ///< `torch 2.10 for CUDA 12.8`
  std::vector<bool> runs_on{};  ///< for each host
  std::size_t count() const;    ///< of those
};

/// Changes that run where the recipe runs and on more of the hosts, as far as can be told before
/// they are locked, best first: that on most hosts; another CUDA release alone before another
/// version of the framework; the nearest version; one without CUDA last, and only where no host has
/// a GPU. Each also makes `driver` and `gpus` of the recipe those of the hosts, where they stand
/// against it. Empty where only the hosts can be changed.
std::vector<Proposal> proposals(const Recipe& recipe, const std::vector<OnHost>& now,
                                const Demand& demand);

/// The oldest driver with which it runs there; nullopt: none does, or no driver is in the way.
std::optional<std::string> driver_that_runs(const OnHost& here, const Demand& demand);
/// A driver, and the build that runs with it where the recipe's own does not.
struct DriverRemedy {
  std::string driver;
  std::optional<Proposal> with;  ///< nullopt: the recipe as it is
};
std::optional<DriverRemedy> driver_remedy(const Recipe& recipe, const OnHost& here,
                                          const Demand& demand);

/// Compute capabilities for which the image's deciding libraries hold machine code: `7.5`, `8.0`;
/// empty where that is unknown, or nothing decides.
std::vector<std::string> served_gpus(const ImageFacts& image);

}  // namespace mlenv
