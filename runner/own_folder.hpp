#pragma once
// What is remembered from run to run, where one process may run for root and another for anybody.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

/// A folder of one's own in a cache: held open, so that nobody puts another in its place. One that
/// belongs to somebody else, that others may write to, or that is reached by a link as its last
/// part is not used: nothing is read from it, nothing written.
class OwnFolder {
 public:
  /// Made when absent (0700). Where that cannot be, it remembers nothing; the debug log says why.
  explicit OwnFolder(const fs::path& path);

  /// A regular file of one's own in it, of at most 16 MB.
  std::optional<std::string> read(const std::string& name) const;
  /// Whole or not at all; a failure is told to the debug log alone.
  void write(const std::string& name, std::string_view text) const;
  /// Removes one's own files there whose names begin with 64 hex digits, as `write` is to be
  /// given them, and that were written before.
  void forget_older_than(std::chrono::hours age) const;

 private:
  fs::path inside() const;
  Fd fd_;
};

}  // namespace mlenv
