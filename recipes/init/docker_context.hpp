#pragma once
// The folder that a Dockerfile's `COPY` reads from, where no command of a build says it.
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

/// That of the Dockerfile (`own`), unless what it copies lies in `project` alone, a folder above
/// it: a `docker/Dockerfile` is mostly built from the project's folder. `text` is the Dockerfile's.
fs::path guessed_docker_context(std::string_view text, const fs::path& own,
                                const fs::path& project);

}  // namespace mlenv
