#pragma once
// Whole texts from places that others may have written: a cloned project, a home folder, /etc. A
// pipe there would be waited for without end, and /dev/zero read without end.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

class Error;

/// `not-a-file`: `kind` (`a pipe`) lies where mlenv wants a file.
Error not_a_file(const fs::path& path, std::string_view kind);

/// A regular file of at most `limit` bytes (base/size_limits.hpp), or what a link leads to that is
/// one. Opened without waiting, and judged before a byte is read. Throws `absent`, `permission`,
/// `io`, `not-a-file` for a pipe, socket, device or folder, and `too-large`.
std::string read_small_file(const fs::path& path, std::uint64_t limit);
/// nullopt when it does not exist.
std::optional<std::string> read_small_file_if_exists(const fs::path& path, std::uint64_t limit);

/// Throws as `read_small_file` does, for whom libcurl or another library reads the file.
void check_small_file(const fs::path& path, std::uint64_t limit);

/// To be written, made where it is absent: `flags` are added to O_WRONLY | O_CREAT. `not-a-file`
/// where a link, folder, pipe, socket or device is in its place: none is followed or waited for.
Fd open_to_write(const fs::path& path, int flags, mode_t mode);

/// What was named on the command line: one of this process's own descriptors (`<(command)`,
/// /dev/stdin) may be a pipe, and is read up to the limit.
std::string read_named_file(const fs::path& path, std::uint64_t limit);

}  // namespace mlenv
