#pragma once
// What ssh is told, and what its complaints mean.
#include <string>
#include <vector>

#include "runner/launch/hosts.hpp"

namespace mlenv::job {

/// The program with its options and the host: everything before the command. The person's own
/// configuration, agent and jump hosts hold; nothing is asked at a terminal, and a host's key must
/// be known.
std::vector<std::string> ssh_words(const std::string& program, const Host& host);

/// What ssh and the node said, and, where ssh's own words are known, what to do.
std::string explained_ssh(const std::string& said, const Host& host);

}  // namespace mlenv::job
