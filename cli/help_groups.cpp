#include "cli/help_groups.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>

namespace mlenv::cli {
namespace {

struct Grouped {
  const char* heading;
  std::string_view options;  ///< words with a blank on both sides
};
constexpr std::array kGroups{
    Grouped{"Files", " --volume --mount --tmpfs --cache --no-project --read-only --keep --from "},
    Grouped{"Environment", " --env --env-file --workdir --user --group-add --hostname --tty "},
    Grouped{"Where it runs", " --runtime --locked --no-check "},
    Grouped{"GPUs and devices", " --gpus --device --rdma "},
    Grouped{"Network", " --network --publish --jupyter "},
    Grouped{
        "Limits",
        " --memory --memory-swap --cpus --cpuset-cpus --pids-limit --shm-size --disk --ulimit "},
    Grouped{"Beginning and end",
            " --name --detach --timeout --restart --stop-signal --stop-timeout --log-size --rm "
            "--after "},
    Grouped{"Results", " --label --outputs --deterministic --seed "},
    Grouped{"Variations (docs/experiments.md)",
            " --matrix --parallel --results --resume --fail-fast "},
    Grouped{"Several nodes (docs/jobs.md)",
            " --nodes --engine --hosts --ranks-per-node --strategy --framework --servers "
            "--evaluator --async --interface --pull-from --restarts --rescale-interval --preflight "
            "--stall-timeout --checkpoints --code --slurm-option --dry-run "},
};

}  // namespace

void group_options(CLI::App& app) {
  for (CLI::Option* const option : app.get_options({})) {
    if (option->get_positional() || option->get_lnames().empty()) continue;
    const std::string name = " --" + option->get_lnames().front() + " ";
    for (const Grouped& group : kGroups) {
      if (group.options.find(name) != std::string_view::npos) option->group(group.heading);
    }
  }
}

}  // namespace mlenv::cli
