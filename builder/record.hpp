#pragma once
// RECORD files (PyPA "Recording installed projects"): CSV of path, hash, size.
#include <map>
#include <string>
#include <string_view>

namespace mlenv {

struct RecordEntry {
  std::string hash;  ///< `sha256=` and URL-safe base64 without padding; empty for RECORD itself
  std::string size;
};
/// By path relative to site-packages, `/` between parts.
using Record = std::map<std::string, RecordEntry>;

/// Throws `bad-wheel`, naming `shown` and the line.
Record parse_record(std::string_view csv, std::string_view shown);
/// Sorted by path, fields quoted only where they must be, lines end in a newline.
std::string render_record(const Record& record);
/// The entry of a file with this content.
RecordEntry record_entry(std::string_view content);

}  // namespace mlenv
