#pragma once
// The store: one folder that holds blobs by digest, layers as slices of wheels, unpacked trees and
// names. Safe with many processes at once and against kill -9 at any moment: everything is made
// under tmp/ and renamed into place whole; a name is published only after what it names.
//
// Large data is not waited for on the disk (docs/store.md): what is published gets a mark under
// unsynced/BOOT-ID/ first, and `sync` (run in the background after a build) makes the file system
// durable and removes the marks. After a power cut the marks of another boot say what is not to be
// trusted: blobs and layers are verified on first use and dropped when they are wrong, trees are
// dropped and unpacked anew.
//
//   blobs/HEX          whole blobs                   trees/HEX/fs   unpacked layer, by diff-id
//   spliced/HEX        pieces (header, table, glue)  keys/HEX       what a build step gave (text)
//   names/NAME         one file per tag              history/NAME   what it meant before
//   partial/HEX        blobs that come in pieces     tmp/           unfinished work, swept when
//   stale unsynced/BOOT-ID/  marks                         version, *.lock
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "images/garbage.hpp"
#include "images/image_index.hpp"
#include "images/oci.hpp"
#include "images/reference.hpp"

namespace mlenv {

class HashExchange;
class PartialBlob;
class StoreFolder;

/// A run of a layer's bytes: literal bytes, or a slice of another blob (a wheel) in the store.
struct Piece {
  std::optional<Digest> blob;  ///< nullopt: literal
  std::uint64_t offset = 0;    ///< in that blob, or in `Spliced::literals`
  std::uint64_t length = 0;
};

/// A blob as a list of pieces. Literal pieces lie one after another in `literals`.
struct Spliced {
  std::string literals;
  std::vector<Piece> pieces;
};

class Store {
 public:
  /// Makes the folder when absent; sweeps tmp/ of dead processes. Throws `store-version` when a
  /// newer mlenv made it.
  explicit Store(const fs::path& root);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();
  /// Whether there is a store in the folder, made by whatever version; makes none.
  static bool exists(const fs::path& root);
  const fs::path& root() const;

  // All methods may be called from any thread.

  // --- blobs -------------------------------------------------------------------------------------
  /// Whole or spliced with every slice's blob there.
  bool has(const Digest& digest) const;
  std::optional<std::uint64_t> size_of(const Digest& digest) const;
  /// Streams from `offset`; throws `absent` with a hint. Bytes are not verified while they pass
  /// (the receiver of a push verifies; `verify` does) except when the blob is unsynced from another
  /// boot: then it is verified first.
  std::unique_ptr<Source> open(const Digest& digest, std::uint64_t offset = 0) const;
  /// Whole content of a small blob, verified; throws `absent` or `damaged`.
  std::string read(const Digest& digest, std::uint64_t limit = 64U << 20U) const;
  /// Path of a whole blob (a wheel, a package); nullopt when absent or spliced.
  std::optional<fs::path> path_of(const Digest& digest) const;
  /// Puts small content; idempotent.
  Digest put(std::string_view content);

  /// A file being written under tmp/; becomes a blob in `commit`, else vanishes.
  class Staged {
   public:
    Staged(Staged&& other) noexcept
        : folder_(other.folder_),
          path_(std::exchange(other.path_, {})),
          fd_(std::move(other.fd_)) {}
    Staged& operator=(Staged&&) = delete;
    Staged(const Staged&) = delete;
    Staged& operator=(const Staged&) = delete;
    ~Staged();
    int fd() const { return fd_.get(); }
    const fs::path& path() const { return path_; }
    /// The caller vouches that the bytes have this digest (it hashed them on their way in).
    /// Idempotent: an existing blob stays.
    void commit(const Digest& digest);

   private:
    friend class Store;
    Staged(StoreFolder& folder, fs::path path, Fd fd)
        : folder_(&folder), path_(std::move(path)), fd_(std::move(fd)) {}
    StoreFolder* folder_;
    fs::path path_;
    Fd fd_;
  };
  Staged stage();
  /// A blob that comes in pieces (partial_blob.hpp), as far as it was fetched before. Takes the
  /// room for all of it: throws `no-space`.
  std::unique_ptr<PartialBlob> partial(const Digest& digest, std::uint64_t size_bytes);
  /// Publishes a layer as slices; every slice's blob must be there. The caller vouches for digest
  /// and size. Idempotent.
  void put_spliced(const Digest& digest, std::uint64_t size_bytes, const Spliced& spliced);

  // --- keys: what a build step gave, found before any work is done -------------------------------
  /// Each value carries a checksum: one that is empty or damaged counts as absent.
  std::optional<std::string> find_key(const Digest& key) const;
  void put_key(const Digest& key, std::string_view value);

  // --- unpacked trees ----------------------------------------------------------------------------
  /// `…/trees/HEX/fs`, complete; nullopt when not unpacked (or untrusted after a power cut: then it
  /// is dropped here, for unpacking it again costs no more than verifying it).
  std::optional<fs::path> find_tree(const Digest& diff_id) const;
  /// A folder under tmp/ with `fs/` in it, to be filled and published; vanishes otherwise.
  class StagedTree {
   public:
    StagedTree(StagedTree&& other) noexcept
        : folder_(other.folder_), path_(std::exchange(other.path_, {})) {}
    StagedTree& operator=(StagedTree&&) = delete;
    StagedTree(const StagedTree&) = delete;
    StagedTree& operator=(const StagedTree&) = delete;
    ~StagedTree();
    fs::path fs_path() const { return path_ / "fs"; }
    /// Idempotent: an existing tree stays and this one is removed. Returns the tree's fs path.
    fs::path publish(const Digest& diff_id);

   private:
    friend class Store;
    StagedTree(StoreFolder& folder, fs::path path) : folder_(&folder), path_(std::move(path)) {}
    StoreFolder* folder_;
    fs::path path_;
  };
  StagedTree stage_tree();
  /// A scratch folder under tmp/ on the store's file system.
  TemporaryFolder scratch() const;

  // --- images and names --------------------------------------------------------------------------
  /// Publishes manifest and config (durably: fsync). Throws `absent` unless all layers are there.
  void put_image(const Image& image);
  /// Publishes its manifest. Throws `absent` unless all that it names is there.
  void put_artifact(const Artifact& artifact);
  /// The same for an index. Throws `absent` unless all that it lists is there.
  void put_index(const ImageIndex& index);
  /// Throws `absent` or `damaged`; `bad-image` for an index.
  Image image(const Digest& manifest) const;
  /// An image alone, or an index with those of its images that are there: at least one, else it
  /// throws `absent`; so it does for one whose config is not there. Throws `damaged`.
  ImageSet image_set(const Digest& manifest_or_index) const;
  /// Durable. `name` without tag means `latest`; one with a digest alone is kept as it is. Throws
  /// `absent` when the store has no such manifest.
  /// What the name meant before is remembered.
  void tag(const Reference& name, const Digest& manifest);
  /// With all that is remembered of it.
  bool untag(const Reference& name);
  struct Meaning {
    Digest manifest;         ///< or index
    std::int64_t since = 0;  ///< seconds since 1970: when the name was given to it
    bool whole = false;      ///< all of it is in the store
  };
  /// What a name means, then what it meant before, each image once and the newest first, a bounded
  /// number; empty: there is no such name.
  std::vector<Meaning> history(const Reference& name) const;
  struct Name {
    std::string name;  ///< `jax-cpu:latest`, `host:5000/team/jax:v1`
    Digest manifest;   ///< or index
  };
  /// Sorted by name.
  std::vector<Name> names() const;
  /// Manifest or index by reference, full digest or unique digest prefix (at least 6 hex digits).
  /// nullopt when there is none; throws `ambiguous` (usage).
  std::optional<Digest> find_image(std::string_view name_or_digest) const;

  // --- soundness ---------------------------------------------------------------------------------
  struct Damage {
    std::string what;  ///< `blob sha256:…`, `layer sha256:…`, `tree …`, `name …`, `key …`, `file …`
    std::string why;
  };
  /// Reads everything: blobs and spliced layers hash to their digest, trees are complete (a tree is
  /// checked against its layer's tar: path, type, size, content), names lead to whole images.
  /// `repair` removes what is damaged, and names that no longer lead to whole images, so that a
  /// rebuild or pull makes them anew. An index of which one image is whole keeps its name: of the
  /// others the manifests go, so that they count as not fetched. `looking_at` is told each item,
  /// one call at a time.
  std::vector<Damage> verify(bool repair,
                             const std::function<void(std::string_view)>& looking_at) const;
  /// Whether this process published something that a sync should follow.
  bool needs_sync() const;
  /// syncfs on the store, then removes the marks that were there before it. May take long.
  void sync() const;

  // --- what nobody needs (garbage.hpp) -----------------------------------------------------------
  /// Finds it, and takes it away. Other processes may do anything meanwhile; for a moment those
  /// that begin wait. Killed, it has taken some of it away.
  Garbage collect_garbage(const GarbageSettings& settings) const;
  /// What this process finds here is not taken for garbage while it lives. One that lives long says
  /// with this what it needs for the rest of its time, if it finds nothing more: images, code.
  void need_only(const std::vector<Digest>& digests) const;

  /// Where threads that make layers at the same time hash together.
  HashExchange& hashes() const;

 private:
  bool is_whole(const Digest& manifest) const;
  std::unique_ptr<StoreFolder> folder_;
  std::unique_ptr<HashExchange> hashes_;
};

}  // namespace mlenv
