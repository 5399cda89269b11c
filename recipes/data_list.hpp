#pragma once
// A data set, file by file: what its digest is of (data_digest.hpp), and with it each file can be
// sent, kept and proven by itself.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

struct DataFile {
  std::string path;  ///< relative, clean; empty: the data set is this one file
  std::uint64_t size_bytes = 0;
  bool executable = false;  ///< by its owner; no part of the digest
  Digest digest;            ///< of the content
};

struct DataList {
  std::vector<DataFile> files;  ///< sorted by path
  std::uint64_t size_bytes() const;
  /// Of the data set.
  Digest digest() const;
};

/// As text, for those who are sent it.
std::string render_data_list(const DataList& list);
/// The other way. Throws `bad-data` for what is no such text, and for paths that lead out of the
/// folder, are not sorted, come twice, or lie beneath a file.
DataList parse_data_list(std::string_view text);

}  // namespace mlenv
