#pragma once
// The digest of a data set: of a file its SHA-256, of a folder that of the list of its files.
#include <optional>
#include <string>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/pool.hpp"
#include "base/progress.hpp"
#include "recipes/data_list.hpp"

namespace mlenv {

/// Of a folder: the SHA-256 of `HEX  PATH` and a NUL for each file, sorted by path (bytes); HEX is
/// that of the content, PATH relative to the folder. What a link leads to counts as if it lay
/// there. Modes, times, owners and empty folders do not matter. So coreutils say the same:
///   find -L . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum
/// Throws `bad-data` for sockets, pipes and devices, and for links that lead out of the folder or
/// nowhere: whoever mounts it would not find what they lead to.
Digest data_digest(const fs::path& path, Pool& pool, Progress& progress);
/// The files themselves; the same errors.
DataList data_list(const fs::path& path, Pool& pool, Progress& progress);
/// Of all files, without reading them; the same errors.
std::uint64_t data_size(const fs::path& path);

/// What tells without reading contents that nothing was changed since a digest was computed: names,
/// sizes, times and inodes.
Digest data_fingerprint(const fs::path& path);

}  // namespace mlenv
