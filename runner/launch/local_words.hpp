#pragma once
// What local_nodes() tells the processes that it starts: the one that makes the network, and the
// first of each node.
#include <optional>
#include <string>
#include <vector>

#include "runner/launch/address_range.hpp"

namespace mlenv::job {

inline constexpr std::string_view kNetworkArgument = "__local-network";
inline constexpr std::string_view kNodeArgument = "__local-node";

/// Descriptors that a node's first process finds open.
inline constexpr int kNetworkFd = 3;   ///< the namespace with the bridge
inline constexpr int kLifelineFd = 4;  ///< ends with the controller
inline constexpr int kUserFd = 5;      ///< the user namespace, where there is one

inline constexpr int kBridge = 2;  ///< its index there

/// Which node of how many.
struct LocalNode {
  std::size_t index = 0;
  std::size_t count = 1;
  AddressRange range;
  std::size_t start = 0;  ///< of all starts: a name that no port has that is not quite gone
  bool own_users = false;
  std::vector<std::string> agent;
};

/// `n1`, `n2` …
std::string name_of(std::size_t node);
std::vector<std::string> render(const LocalNode& node);
LocalNode parse_local_node(const std::vector<std::string>& words);

/// /etc/hosts of every node: each node's name and address, and the loopback as `localhost` alone.
/// Frameworks that meet at a host's own name (JAX's gloo on processors) are sent to themselves by
/// the `127.0.1.1 NAME` that Debian writes, and fail where the name leads nowhere.
std::string hosts_file(std::size_t count, AddressRange range);

/// The node's whole life, in the process that was started for it; the agent's exit status. Throws
/// what kept the agent from being started.
int run_local_node(const LocalNode& node);

}  // namespace mlenv::job
