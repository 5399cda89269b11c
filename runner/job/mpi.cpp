#include "runner/job/mpi.hpp"

#include <fmt/core.h>

#include "runner/job/roles.hpp"
#include "runner/mpi/frames.hpp"

namespace mlenv::job {
namespace {

/// By which interface: one name where it is the same everywhere; else the network that all
/// addresses are in, since mpirun's own variables reach all nodes. Empty: neither.
std::string network_of(const std::vector<Place>& places) {
  const std::string& first = places.front().interface;
  std::vector<std::string> addresses;
  bool same = true;
  for (const Place& place : places) {
    addresses.push_back(place.address);
    same = same && place.interface == first;
  }
  return same ? first : mpi::common_network(addresses);
}

std::string mpi_path(std::string_view name) { return fmt::format("{}/{}", mpi::kFolder, name); }

/// How mpirun comes to other nodes.
void tell_remote_shell(Variables& env) {
  const std::string shell{mpi::kShell};
  const std::string hosts = mpi_path("hostfile");
  env["MLENV_MPI_HOSTFILE"] = hosts;
  env["OMPI_MCA_plm"] = "rsh";
  env["OMPI_MCA_plm_rsh_agent"] = shell;
  env["OMPI_MCA_orte_default_hostfile"] = hosts;
  env["OMPI_MCA_orte_keep_fqdn_hostnames"] = "1";
  // A shell whose mpirun is gone ends what it started.
  env["OMPI_MCA_orte_leave_session_attached"] = "1";
  env["PRTE_MCA_plm"] = "ssh";  // Open MPI 5
  env["PRTE_MCA_plm_ssh_agent"] = shell;
  env["PRTE_MCA_prte_default_hostfile"] = hosts;
  env["PRTE_MCA_prte_keep_fqdn_hostnames"] = "1";
  env["PRTE_MCA_prte_leave_session_attached"] = "1";
  env["HYDRA_LAUNCHER"] = "ssh";  // MPICH
  env["HYDRA_LAUNCHER_EXEC"] = shell;
  env["HYDRA_HOST_FILE"] = mpi_path("hostfile.hydra");
  env["I_MPI_HYDRA_BOOTSTRAP"] = "ssh";
  env["I_MPI_HYDRA_BOOTSTRAP_EXEC"] = shell;
  env["I_MPI_HYDRA_HOST_FILE"] = env["HYDRA_HOST_FILE"];
}

/// How mpirun treats its ranks.
void tell_manners(Variables& env) {
  // A container's root is nobody's but the container's.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"}) {
    env[name] = "1";
    env[std::string(name) + "_CONFIRM"] = "1";
  }
  // All ranks of the first node come first. They are not bound: each would have one processor for
  // all its threads, and two jobs on a node the same one.
  env["OMPI_MCA_rmaps_base_mapping_policy"] = "slot";
  env["OMPI_MCA_hwloc_base_binding_policy"] = "none";
  env["PRTE_MCA_rmaps_default_mapping_policy"] = "slot";
  env["PRTE_MCA_hwloc_default_binding_policy"] = "none";
  env["PMIX_MCA_gds"] = "hash";
}

void tell_interface(const Start& start, const Rank& rank, Variables& env) {
  const std::string network = network_of(start.places);
  if (!network.empty()) {
    env["OMPI_MCA_btl_tcp_if_include"] = network;
    env["OMPI_MCA_oob_tcp_if_include"] = network;
    env["PRTE_MCA_prte_if_include"] = network;
    env["PRTE_MCA_oob_tcp_if_include"] = network;
  }
  const std::string& interface = start.place_of(rank).interface;
  if (interface.empty()) return;
  env["HYDRA_IFACE"] = interface;
  env["I_MPI_HYDRA_IFACE"] = interface;
  // With it UCX uses that device alone: right where the ranks have no InfiniBand.
  if (!start.job.options.rdma) env["UCX_NET_DEVICES"] = interface;
}

}  // namespace

std::vector<mpi::Host> mpi_hosts(const Job& job, const std::vector<Place>& places) {
  std::vector<mpi::Host> hosts;
  for (const Place& place : places) {
    hosts.push_back({place.name, place.address, shell_port(place), job.ranks_per_node});
  }
  return hosts;
}

void tell_mpi(const Start& start, const Rank& rank, Variables& env) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
    env.erase(name);
  }
  env[mpi::kHostsVariable] = mpi::render_hosts(mpi_hosts(start.job, start.places));
  tell_remote_shell(env);
  tell_manners(env);
  tell_interface(start, rank, env);
}

std::string mpi_secret(const Job& job) {
  return job.strategy == Strategy::mpi ? mpi::fresh_secret() : "";
}

void start_mpi(const Job& job, const std::vector<Place>& places, const Rank& rank,
               const std::string& secret, RankStart& start) {
  std::vector<std::string> command = start.run.argv;
  if (command.empty()) {
    command = start.run.config.entrypoint;
    command.insert(command.end(), start.run.config.command.begin(), start.run.config.command.end());
  }
  start.run.argv = {std::string(mpi::kProgram), "mpi"};
  if (rank.role == kMpiLauncher) {
    start.run.argv.insert(start.run.argv.end(), {"launch", "--"});
    start.run.argv.insert(start.run.argv.end(), command.begin(), command.end());
  } else {
    start.run.argv.emplace_back("wait");
  }
  start.run.env.push_back(fmt::format("{}={}", mpi::kTokenVariable, secret));
  start.mpi_hosts = mpi::render_hosts(mpi_hosts(job, places));
}

std::size_t told_apart(const JobPlan& plan) {
  const bool all_by_mpirun = !plan.ranks.empty() && plan.ranks.front().role == kMpiLauncher;
  return all_by_mpirun ? 1 : plan.ranks.size();
}

std::string called(const Rank& rank, const std::string& node) {
  const bool is_mpi = rank.role == kMpiLauncher || rank.role == kMpiWorker;
  return is_mpi ? "MPI on " + node : fmt::format("rank {} on {}", rank.rank, node);
}

}  // namespace mlenv::job
