#pragma once
// Where this machine's own programs and libraries are looked for.
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

/// The folders of a list as PATH has it, but those that what runs in a container may write to:
/// relative ones (an empty one is the working folder), and those that are in `project`, or lead
/// there. The system's own (`/usr/bin` and its kin) stay wherever the project is. An empty
/// `project` has nothing in it.
std::string host_folders(std::string_view list, const fs::path& project);

/// Has PATH and LD_LIBRARY_PATH of this process, and so of all that it starts, be that: of the
/// folder that it was started in, unless `relative_only`. To be called before there are threads.
void use_host_folders(bool relative_only = false);

}  // namespace mlenv
