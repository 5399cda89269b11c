#pragma once
// Files that a person asked an answer into (`--html FILE`, `-o FILE`).
#include "base/files.hpp"

namespace mlenv::cli {

/// Whole, on the disk, or not there at all, and said so. A link's target is written, not the link.
/// What is no file (a pipe, /dev/stdout, /dev/full) is written to, and stays what it is.
void write_answer_file(const fs::path& path, std::string_view text, mode_t mode = 0644);

/// Throws `bad-output` (usage) where something is there that is no file.
void require_file_place(const fs::path& path);

}  // namespace mlenv::cli
