#pragma once
// What a node says of itself when it is met.
#include "runner/job/node_link.hpp"

namespace mlenv::job {

/// Of this machine, with a store in `store`.
NodeHello hello_of(const fs::path& store, std::size_t ports);

/// TCP ports that nobody listens on right now, at any address; below those that the kernel gives to
/// outgoing connections, and by chance, so that two jobs hardly ever get the same. Fewer than
/// `count` where there are no more.
std::vector<std::uint16_t> free_ports(std::size_t count);

}  // namespace mlenv::job
