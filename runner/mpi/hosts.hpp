#pragma once
// The nodes of an MPI job as the containers on them know each other. Plain.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::mpi {

/// What a job's container has at this path: this program, names under which others look for it
/// (`bin/ssh`), and files of hosts. The agent mounts it (runner/node/mpi_folder.hpp).
inline constexpr std::string_view kFolder = "/run/mlenv-mpi";
inline constexpr std::string_view kProgram = "/run/mlenv-mpi/mlenv-node";
inline constexpr std::string_view kShell = "/run/mlenv-mpi/bin/ssh";

// Variables by which containers are told of the job.
inline constexpr const char* kHostsVariable = "MLENV_MPI_HOSTS";
inline constexpr const char* kTokenVariable = "MLENV_MPI_TOKEN";
/// `no`: the command is started as it is, whatever it is.
inline constexpr const char* kMpirunVariable = "MLENV_MPIRUN";

/// Open MPI's ranks give their processor away while they wait.
inline constexpr const char* kYieldVariable = "OMPI_MCA_mpi_yield_when_idle";

struct Host {
  std::string name;     ///< as the engine calls the node; the first one has the command
  std::string address;  ///< IPv4 or IPv6
  std::uint16_t port = 0;
  std::uint64_t slots = 1;  ///< ranks that it takes
  friend bool operator==(const Host&, const Host&) = default;
};

/// `name=address;port;slots` with commas between, for kHostsVariable.
std::string render_hosts(const std::vector<Host>& hosts);
/// Throws `bad-stream` for anything else.
std::vector<Host> parse_hosts(std::string_view text);

/// By the word that a program uses for it: its name, its address, or the first part of its name
/// where that is no other's; a user before `@` does not count. nullptr: none.
const Host* host_called(const std::vector<Host>& hosts, std::string_view word);

std::uint64_t slots_of(const std::vector<Host>& hosts);

/// `name slots=2` on each line: Open MPI, DeepSpeed.
std::string hostfile(const std::vector<Host>& hosts);
/// `name:2` on each line: MPICH and what comes of it, Horovod.
std::string hydra_hostfile(const std::vector<Host>& hosts);

/// The smallest network that has all addresses, `10.0.0.0/29`; empty where they are not all IPv4,
/// or only one that begins with fewer than 8 common bits has them.
std::string common_network(const std::vector<std::string>& addresses);

}  // namespace mlenv::mpi
