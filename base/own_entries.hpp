#pragma once
// What may be taken away without asking: only what by its name and its owner is ours. Links are
// never followed.
#include <sys/stat.h>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

/// `prefix` and twelve letters or digits, as TemporaryFolder and AtomicFile name what they make.
bool has_temporary_name(std::string_view name, std::string_view prefix);

/// 64 digits of a SHA-256.
bool is_digest_name(std::string_view name);

/// `20260301-120000-0fa123`: a time and six more digits, as new_run_id (runner/record) gives it.
bool is_time_name(std::string_view name);

/// lstat(2) of something of this process's user; nullopt: there is nothing, or it is somebody
/// else's.
std::optional<struct stat> own_status(const fs::path& path);
bool is_own_folder(const fs::path& path);
bool is_own_file(const fs::path& path);

/// Makes a folder of mlenv's own, and its parents: whatever the umask is, nobody but its owner may
/// write there. One that is there stays as it is.
void make_own_folders(const fs::path& path);

}  // namespace mlenv
