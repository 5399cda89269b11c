#pragma once
// apt's own configuration of package sources (sources.list(5)): one-line and deb822 files.
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// One `deb` entry; a deb822 stanza with several suites gives one for each.
struct AptSource {
  std::vector<std::string> uris;
  std::string suite;
  std::vector<std::string> components;     ///< empty for flat archives (suite ends in `/`)
  std::vector<std::string> architectures;  ///< empty: every one
  fs::path signed_by;                      ///< a keyring file; empty: none named
  std::string key;                         ///< keys written in the file itself, ASCII-armoured
  bool check_valid_until = true;
  fs::path file;  ///< where it stands
  friend bool operator==(const AptSource&, const AptSource&) = default;
};

/// Enabled `deb` entries of one file, in either format, told by its content. URIs that are not http
/// or https (cdrom, file, mirror lists) are left out, entries without any others too; so are lines
/// that cannot be read, as apt itself reports those. `Signed-By` with fingerprints counts as none.
std::vector<AptSource> parse_apt_sources(std::string_view text, const fs::path& shown_path);

/// All of `root`/etc/apt: sources.list, then sources.list.d/*.list and *.sources by name. Absent
/// files and folders give nothing.
std::vector<AptSource> read_apt_sources(const fs::path& root);

}  // namespace mlenv
