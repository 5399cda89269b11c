#include "runner/node/version.hpp"

namespace mlenv::job {

std::string_view own_version() { return MLENV_VERSION; }

}  // namespace mlenv::job
