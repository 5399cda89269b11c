#pragma once
// Where a process keeps its unfinished work: tmp/RANDOM/ with a locked file in it. The lock goes
// with the process, so whoever gets it may remove the folder.
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/files.hpp"

namespace mlenv {

/// Removes a folder of unfinished work; one that cannot be removed now is left for the next sweep.
void remove_work(const fs::path& folder);

class StoreWork {
 public:
  /// `tmp` is the store's folder of such folders; `guard` a lock file that is held shared while one
  /// is being made and exclusively while dead ones are looked for.
  StoreWork(fs::path tmp, fs::path guard) : tmp_(std::move(tmp)), guard_(std::move(guard)) {}
  StoreWork(const StoreWork&) = delete;
  StoreWork& operator=(const StoreWork&) = delete;
  /// Removes our folder.
  ~StoreWork();

  /// Our folder; made at the first call.
  const fs::path& folder();
  /// A name that nobody had before, in our folder.
  fs::path fresh(std::string_view kind);
  /// A text that no other publication has.
  std::string unique();

  /// Removes what dead processes left. What cannot be removed now is left for another time.
  void sweep() const;

 private:
  fs::path tmp_;
  fs::path guard_;
  std::mutex mutex_;
  std::optional<FileLock> lock_;
  fs::path folder_;
  std::atomic<unsigned> count_{0};
};

}  // namespace mlenv
