#pragma once
// readdir(3), whose failures look like the end unless errno is asked.
#include <dirent.h>

#include "base/files.hpp"

namespace mlenv {

/// The next entry but `.` and `..`; nullptr at the end. Throws `permission` or `io`, naming
/// `shown`. For streams that no two threads share.
const dirent* next_entry(DIR* folder, const fs::path& shown);

}  // namespace mlenv
