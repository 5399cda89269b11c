#pragma once
// Marks for what may not be on the disk yet: empty files unsynced/BOOT-ID/KIND.HEX.UNIQUE. A mark
// of another boot makes its item suspect (docs/store.md, "Power cuts").
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

class StoreMarks {
 public:
  enum class Kind { blob, spliced, tree };

  /// Reads the marks of other boots: one directory listing when there are none.
  explicit StoreMarks(fs::path folder);

  /// Call when the item's bytes are written and before it gets its name. `unique` differs for each
  /// publication, so that a sync removes no mark that is younger than itself.
  void add(Kind kind, const Digest& digest, std::string_view unique) const;

  /// A mark of another boot was there when the store was opened.
  bool is_suspect(Kind kind, const Digest& digest) const;
  /// Such a mark is still there: nobody else has dealt with it.
  bool is_still_marked(Kind kind, const Digest& digest) const;
  /// There is one of this boot.
  bool is_marked(Kind kind, const Digest& digest) const;
  /// Removes the other boots' marks of this item.
  void clear(Kind kind, const Digest& digest);

  /// Whether this process added one.
  bool has_added() const { return added_; }

  /// This boot's marks, now.
  std::vector<fs::path> current() const;

 private:
  fs::path folder_;
  std::string boot_id_;
  mutable std::atomic<bool> added_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<fs::path>> suspects_;  ///< by KIND.HEX
};

}  // namespace mlenv
