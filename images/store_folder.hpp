#pragma once
// The inside of Store: where things lie, and how one gets its name. For images/store*.cpp only.
#include <optional>
#include <string>

#include "base/error.hpp"
#include "images/spliced.hpp"
#include "images/store.hpp"
#include "images/store_marks.hpp"
#include "images/store_work.hpp"

namespace mlenv {

class StoreFolder {
 public:
  using Item = StoreMarks::Kind;

  explicit StoreFolder(const fs::path& root);

  const fs::path& root() const { return root_; }
  StoreMarks& marks() { return marks_; }
  StoreWork& work() { return work_; }

  fs::path blob(const Digest& digest) const { return root_ / "blobs" / digest.hex(); }
  fs::path spliced(const Digest& digest) const { return root_ / "spliced" / digest.hex(); }
  fs::path tree(const Digest& diff_id) const { return root_ / "trees" / diff_id.hex(); }
  fs::path key(const Digest& key) const { return root_ / "keys" / key.hex(); }
  fs::path names() const { return root_ / "names"; }
  fs::path place(Item item, const Digest& digest) const;

  /// Marks the item and gives it its name, unless one is there already: then `made` is removed.
  void publish(Item item, const fs::path& made, const Digest& digest);
  /// A small file that replaces what is there. Durable: its bytes and its name are on the disk when
  /// this returns.
  void publish_small(std::string_view text, const fs::path& target, bool durable);
  /// A manifest, config or index, with that digest: durable as above. Nothing is written where it
  /// is there, on the disk and undamaged.
  void publish_text(std::string_view text, const Digest& digest);

  /// A whole blob that may be trusted: one that was not synced before the last boot is hashed now.
  bool has_blob(const Digest& digest);
  Fd open_blob(const Digest& digest);
  /// The same for a layer's pieces; nullopt when it or one of its wheels is not there.
  std::optional<SplicedHeader> find_spliced(const Digest& digest);

  /// An unpacked tree; one that was not synced before the last boot is dropped instead of verified.
  bool has_tree(const Digest& diff_id);

  /// Takes an item away; whoever has it open keeps it.
  void drop(Item item, const Digest& digest);

 private:
  /// What another boot left unsynced: keeps it when `is_right`, else drops it.
  template <typename Check>
  bool settle(Item item, const Digest& digest, Check&& is_right);
  /// Whether such a blob is there already as it should be; its name is on the disk then.
  bool keeps_text(std::string_view text, const Digest& digest);
  void drop_locked(Item item, const Digest& digest, std::optional<fs::path>& trash);
  FileLock lock_suspects() const;

  fs::path root_;
  StoreMarks marks_;
  StoreWork work_;
};

/// `absent`, with what to do.
Error absent_blob(const Digest& digest);

bool is_there(const fs::path& path);

/// A blob, or a layer's pieces, to read: a regular file. `damaged` for anything else.
Fd open_item(const fs::path& path);
Fd open_item_if_there(const fs::path& path);  ///< empty: there is none

/// Of a blob, layer, tree or key, by the name of its file; nullopt: it has none.
std::optional<Digest> digest_of_name(const fs::path& file);

}  // namespace mlenv
