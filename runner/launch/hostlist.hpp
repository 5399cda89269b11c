#pragma once
// Names of nodes as Slurm writes them: `gpu[1-3,007],login`.
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::job {

/// One by one, in that order. Throws `no-node` for what is no such list, or one of more than 10000.
std::vector<std::string> expand_hostlist(std::string_view list);

}  // namespace mlenv::job
