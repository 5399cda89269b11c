#include "runner/job/roles.hpp"

#include <map>
#include <optional>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kWorker = "worker";

/// The last rank of a node that nothing is decided about; nullopt: there is none.
std::optional<std::size_t> last_free(const std::vector<RankRole>& ranks, std::uint64_t node,
                                     std::uint64_t per_node) {
  for (std::uint64_t local = per_node; local > 0; --local) {
    const std::size_t rank = node * per_node + local - 1;
    if (ranks[rank].role.empty()) return rank;
  }
  return std::nullopt;
}

/// Each gives one to the node that has the fewest, the last of several.
void place_servers(std::vector<RankRole>& ranks, std::uint64_t servers, std::uint64_t nodes) {
  const std::uint64_t per_node = ranks.size() / nodes;
  for (std::uint64_t placed = 0; placed < servers;) {
    for (std::uint64_t node = nodes; node > 0 && placed < servers; --node) {
      const auto rank = last_free(ranks, node - 1, per_node);
      if (!rank) continue;
      ranks[*rank].role = "ps";
      ++placed;
    }
  }
}

Error too_few_ranks(const ServerRoles& roles, std::uint64_t world) {
  std::vector<std::string> asked;
  if (roles.chief) asked.emplace_back("a chief");
  if (roles.servers > 0) asked.push_back(counted(roles.servers, "parameter server"));
  if (roles.evaluator) asked.emplace_back("an evaluator");
  return usage_error("bad-job", "{} and at least one worker do not fit in {}", join(asked, ", "),
                     counted(world, "rank"))
      .hint("take more nodes or more ranks on each node, or fewer servers");
}

}  // namespace

std::vector<RankRole> roles_of(const Job& job, std::uint64_t nodes) {
  const bool is_mpi = job.strategy == Strategy::mpi;
  const std::uint64_t world = is_mpi ? nodes : nodes * job.ranks_per_node;
  std::vector<RankRole> ranks(world);
  if (is_mpi) {
    for (RankRole& rank : ranks) rank.role = kMpiWorker;
    ranks.front().role = kMpiLauncher;
  }
  if (job.strategy == Strategy::parameter_server) {
    const ServerRoles& roles = job.roles;
    const std::uint64_t others = (roles.chief ? 1U : 0U) + (roles.evaluator ? 1U : 0U);
    if (others >= world || roles.servers >= world - others) throw too_few_ranks(roles, world);
    if (roles.chief) ranks.front().role = "chief";
    if (roles.evaluator) ranks.back().role = "evaluator";
    place_servers(ranks, roles.servers, nodes);
  }
  std::map<std::string_view, std::uint64_t> seen;
  for (RankRole& rank : ranks) {
    if (rank.role.empty()) rank.role = kWorker;
    rank.index = seen[rank.role]++;
  }
  return ranks;
}

}  // namespace mlenv::job
