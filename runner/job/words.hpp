#pragma once
// Words of jobs, as options, job.yaml and records have them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "runner/job/job.hpp"

namespace mlenv::job {

/// `plain`, `allreduce`, `parameter-server`
std::string_view name_of(Strategy strategy);
/// `none`, `torch`, `jax`, `tensorflow`, `mpi`
std::string_view name_of(Framework framework);
/// nullopt: there is none of that name. PyTorch may be `pytorch` too, as recipes have it.
std::optional<Strategy> strategy_of(std::string_view name);
std::optional<Framework> framework_of(std::string_view name);
/// For suggestions.
std::vector<std::string_view> strategy_names();
std::vector<std::string_view> framework_names();

/// `4`, or `2:4`: at least one, at most 65535 (there are no more ports), the first no more than the
/// second. nullopt: not that.
std::optional<NodeCount> node_count_of(std::string_view text);
/// `4`, `2:4`
std::string text_of(const NodeCount& nodes);

/// What an image's programs are likely to be written for: torch before jax before tensorflow, since
/// an image that holds several has the later ones for their data loaders or as somebody's
/// dependency; `none` where it holds none, or where it is not known.
Framework framework_of(const ImageFacts& image);

}  // namespace mlenv::job
