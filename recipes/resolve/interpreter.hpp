#pragma once
// A CPython that the recipe brings along in place of the base's: an archive named by URL and
// SHA-256, in the layout of python-build-standalone's `install_only` builds (`python/bin/…`,
// `python/lib/python3.12/…`).
#include <functional>
#include <optional>
#include <string>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "base/tar.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// What the recipe's archive is, which is fetched into `cache` unless it lies there. Nothing of it
/// is run. Throws `bad-python` when it is not of that layout or does not tell its version,
/// `digest-mismatch`, `network`, `http-status`, `absent`.
LockedPython lock_interpreter(const RecipeSources::Python& source, Http& http,
                              const fs::path& cache, Progress& progress);

/// Where `cache` keeps the archive of that digest, whether it is there or not.
fs::path interpreter_path(const fs::path& cache, const Digest& digest);

/// Fetches `url` (http, https or file) to `path`, verified where its digest is known. Throws as
/// above.
void fetch_interpreter(const std::string& url, const std::optional<Digest>& digest,
                       std::optional<std::uint64_t> size_bytes, const fs::path& path, Http& http);

/// What a lock says of the archive at `path`, called `name`, whose bytes are `digest`'s. Throws
/// `bad-python`.
LockedPython locked_interpreter(const fs::path& path, std::string name, const Digest& digest);

/// Whether it is there and holds those bytes.
bool is_intact_interpreter(const fs::path& path, const Digest& digest);

/// Calls `take` with every entry below `python/` (`bin/python3.12`), decompressed; its link, where
/// it is a hard link, is such a path too.
void read_interpreter(const fs::path& archive,
                      const std::function<void(const TarEntry&, Source&)>& take);

}  // namespace mlenv
