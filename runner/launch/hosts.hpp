#pragma once
// Which machines a job may use, as a person writes them: a file with a host on each line,
//
//   # two with four GPUs each
//   gpu1 slots=4 address=10.0.0.1
//   gpu2 slots=4 user=jo port=2222
//
// or its names, `gpu1,gpu2`. OpenMPI's files of hosts are read as they are.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv::job {

struct Host {
  std::string name;         ///< as ssh is told it: a name of its configuration will do
  std::uint64_t slots = 0;  ///< most ranks; 0: not said
  std::string address;      ///< at which the other nodes reach it; empty: it tells
  std::string user;         ///< empty: ssh's
  std::uint16_t port = 0;   ///< 0: ssh's
  friend bool operator==(const Host&, const Host&) = default;
};

/// In the file's order. Throws `bad-hosts` (usage) with all mistakes, each with its place.
std::vector<Host> parse_hosts(const std::string& text, const fs::path& shown);
/// What `--hosts` says: a file where there is one of that name, else names between commas.
std::vector<Host> hosts_of(const std::string& words);

/// Ranks on each node: `said`, or where nothing is said and all hosts name their slots, the least
/// of these, else 1. Throws `bad-hosts` (usage) where a host has fewer slots than that.
std::uint64_t ranks_in_slots(const std::vector<Host>& hosts, std::optional<std::uint64_t> said);

}  // namespace mlenv::job
