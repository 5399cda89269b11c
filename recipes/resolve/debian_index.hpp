#pragma once
// From package sources to verified Packages indexes in a pool: InRelease files fetched and checked,
// then the indexes they name. Everything fetched is kept in a cache folder:
//   releases/HEX.InRelease   HEX of the suite's address; as signed, verified again at each use
//   indexes/HEX              a compressed Packages file by its own SHA-256
//   pools/HEX-ARCH.solv      the same as libsolv reads it fast, behind a line that says from what
//                            it was made and which digest the rest has; else it is made anew
#include <functional>
#include <string>
#include <vector>

#include "base/http.hpp"
#include "base/progress.hpp"
#include "recipes/resolve/debian.hpp"
#include "recipes/resolve/release.hpp"
#include "recipes/resolve/solv.hpp"

namespace mlenv {

/// One Packages index that a verified Release names.
struct PackagesIndex {
  std::string suite_url;  ///< `…/dists/bookworm`
  std::string title;      ///< `bookworm main`
  std::string path;       ///< below the suite: `main/binary-amd64/Packages.xz`
  ReleaseFile file;
  bool by_hash = false;
  std::vector<std::string> suites;  ///< what `package/suite` may call it
  int priority = Release::kUsualPriority;
};

struct IndexOptions {
  std::string distribution = "debian";  ///< whose archive keyring is the default
  std::string suite;                    ///< the one without which there is nothing to choose from
  std::string architecture;
  fs::path cache;  ///< folder of this module's own
  std::time_t now = 0;
  fs::path root = "/";  ///< where keyrings are looked for
};

/// Fetches and verifies the Release of every source. A source that turns out to be somebody else's
/// (its Origin), or `optional` and absent, is passed over with a note; one that cannot be reached
/// is taken from the cache with a note. A mirror that offers an older Release than the cache holds
/// is not believed. Throws `bad-signature`, `release-mismatch`, `index-expired`, `no-keyring`,
/// `http-status`, `network`.
std::vector<PackagesIndex> find_indexes(const std::vector<DebianSource>& sources,
                                        const IndexOptions& options, Http& http,
                                        Progress& progress);

/// Adds every index to `pool`, with its place in `indexes` as its origin's number, fetching what
/// the cache lacks. Throws `index-mismatch`, `network`.
void load_indexes(const std::vector<PackagesIndex>& indexes, const IndexOptions& options,
                  Http& http, Progress& progress, solv::Pool& pool);

/// What the pool needs beside what libsolv reads: exposed for tests.
std::vector<solv::Facts> index_facts(std::string_view packages);

}  // namespace mlenv
