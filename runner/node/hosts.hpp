#pragma once
// /etc/hosts of a rank.
#include <string>
#include <string_view>

namespace mlenv::job {

/// `hosts` (the job's nodes), then the lines of the node's own file but for what is empty there, a
/// comment, or a loopback address under the name of one of those nodes.
std::string hosts_with_own(const std::string& hosts, std::string_view own);

}  // namespace mlenv::job
