#pragma once
// Writable layers that outlive their runs (`mlenv run --keep`): STORE/kept/ID. One is there as long
// as the record of a run that wrote to it is; whoever uses it holds it, so that nobody else writes
// to it or takes it away meanwhile.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv {

/// Held as long as this object is, or a process that inherited `fd()`.
class HeldLayer {
 public:
  HeldLayer(std::string id, fs::path folder, Fd lock, std::uint64_t generation)
      : id_(std::move(id)),
        folder_(std::move(folder)),
        lock_(std::move(lock)),
        generation_(generation) {}
  const std::string& id() const { return id_; }
  /// So many runs had it to write before: the same files where it is the same.
  std::uint64_t generation() const { return generation_; }
  const fs::path& folder() const { return folder_; }
  int fd() const { return lock_.get(); }

 private:
  std::string id_;
  fs::path folder_;
  Fd lock_;
  std::uint64_t generation_;
};

struct RemovedLayers {
  std::size_t count = 0;
  std::vector<std::string> staying;  ///< which could not be removed, and why: a line for each
};

class KeptLayers {
 public:
  /// Makes nothing.
  explicit KeptLayers(const fs::path& store_root)
      : folder_(store_root / "kept"), records_(runs_folder(store_root)) {}

  /// A new one over the image of that digest, held for writing.
  HeldLayer make(std::string_view image) const;
  /// By one run to write, or by any number to start from it. Throws `no-kept-layer` (usage) where
  /// it is gone, `layer-differs` (refusal) where it lies over another image, `layer-busy`
  /// (refusal).
  HeldLayer hold(const std::string& id, std::string_view image, bool to_write) const;
  /// Of its files on the disk; 0 where it is gone.
  std::uint64_t size_bytes(const std::string& id) const;
  /// So many runs have had it to write; 0 where it is gone.
  std::uint64_t generation(const std::string& id) const;
  /// Takes those away to which no recorded run wrote, and what a killed mlenv left of others. One
  /// that is held stays, and nothing is said of it; one that no record names is waited for, up to a
  /// second: a run that just ended may hold it.
  RemovedLayers remove_unnamed() const;
  /// The images that they lie over.
  std::vector<Digest> needs() const;

 private:
  void remove(const fs::path& folder) const;
  std::vector<std::string> named() const;
  std::string user_of(const std::string& id) const;

  fs::path folder_;
  RunRecords records_;
};

/// The writable folder of a layer, as overlayfs takes it; beside it is its `work`.
inline fs::path upper_of(const fs::path& layer) { return layer / "upper"; }
inline fs::path work_of(const fs::path& layer) { return layer / "work"; }

/// The paths of what mlenv itself wrote into a layer, of which nothing is to go on.
std::vector<std::string> own_files(const fs::path& layer);
void note_own_files(const fs::path& layer, const std::vector<std::string>& paths);

/// Notes whose ids the files in a layer have, or compares with what was noted: /proc/self/uid_map
/// and gid_map of the namespace that it is used in. Throws `layer-differs` (refusal).
void require_same_ids(const fs::path& layer, std::string_view maps);

}  // namespace mlenv
