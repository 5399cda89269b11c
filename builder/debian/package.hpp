#pragma once
// A binary package file taken apart: its control data, and its files in a folder of their own.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/tar.hpp"

namespace mlenv::debian {

/// The fields of one control stanza (deb-control(5)); names in lower case, continuation lines
/// joined with their newlines.
using Fields = std::map<std::string, std::string>;
Fields parse_stanza(std::string_view text);

/// `a (>= 1) | b:any, c [amd64]` → {{a, b}, {c}}: the names alone.
std::vector<std::vector<std::string>> parse_relation(std::string_view text);

struct ControlFile {
  std::uint32_t mode = 0644;
  std::string text;
};

struct Package {
  std::string name;
  std::string version;
  std::string architecture;
  std::string stanza;  ///< the control file as it is
  Fields fields;
  std::map<std::string, ControlFile> control;  ///< all members, `control` and `preinst` among them
  std::vector<TarEntry> entries;               ///< of the data archive, in its order

  std::string field(const std::string& name_in_lower_case) const;
  bool essential() const { return field("essential") == "yes"; }
  /// Base name of its files in dpkg's database: `libc6:amd64` for Multi-Arch: same, else the name.
  std::string info_name() const;
  /// Paths in `conffiles` (absolute), flags of deb-conffiles(5) taken off.
  std::vector<std::string> conffiles() const;
};

/// Reads `file`; its data goes below the empty folder `staging` with modes and times, folders as
/// 0755. With `only`, no other paths are written. Throws `bad-deb`.
Package unpack_package(const fs::path& file, const fs::path& staging,
                       const std::set<std::string>* only = nullptr);

}  // namespace mlenv::debian
