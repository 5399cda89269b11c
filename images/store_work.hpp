#pragma once
// Where a process keeps its unfinished work: tmp/RANDOM/ with a locked file in it. The lock goes
// with the process, so whoever gets it may remove the folder.
//
// The folder also tells that the process lives, and since when: what it found in the store since is
// no garbage (images/garbage.hpp). The guard keeps the two apart: whoever looks for garbage holds
// it exclusively, so that nobody begins to live, or begins to need something, meanwhile.
#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

/// Removes a folder of unfinished work; one that cannot be removed now is left for the next sweep.
/// Why it stays; empty: it is gone.
std::string remove_work(const fs::path& folder);

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

  /// Removes what dead processes left. What cannot be removed now is left for another time. Only
  /// what this user's mlenv made is touched, by its name, its owner and the lock in it.
  void sweep() const;
  /// What dead processes left and nobody could remove, and why.
  struct Left {
    fs::path folder;
    std::string why;
  };
  std::vector<Left> left() const;

  /// Whether something of the store is there, at `path`. If it is, its last change (st_mtime) says
  /// from here on that it was used, to the hour, and that this process lives is told first. Where
  /// that cannot be told (a full disk, a store that may only be read) the answer is the same. What
  /// is another user's keeps its time: all that is there is told to be needed then.
  bool use(const fs::path& path);
  /// What it used is not needed any more, but for these: until it uses something again.
  void need_only(const std::vector<Digest>& digests);

  /// A process that lives. Since 1970: nobody knows since when, or it needs all that is there.
  struct Living {
    std::chrono::system_clock::time_point since;
    std::optional<std::string> needs;  ///< digests that are all it needs; nullopt: what it used
  };
  /// While it is held nobody begins to live or to use something that was not used for an hour.
  /// Whoever holds it makes our folder by the second one, which throws `no-space`; where it cannot
  /// be made, it calls nothing here that needs it: that would wait for the guard for ever.
  FileLock keep_others_out() const;
  void make_while_others_wait();
  /// Of other processes; for who holds that lock.
  std::vector<Living> living() const;
  /// What a living process used counts as used from so long before it began.
  static constexpr std::chrono::minutes kGrain{60};

  void only_look(bool only) { only_looks_ = only; }

 private:
  enum class Told { nothing, lives, needs };
  void tell_that_we_live();
  void make_folder();
  void need_all();
  fs::path tmp_;
  fs::path guard_;
  std::mutex mutex_;
  std::optional<FileLock> lock_;
  fs::path folder_;
  std::mutex telling_;
  std::optional<std::time_t> first_use_;
  std::atomic<Told> told_{Told::nothing};
  std::atomic<bool> only_looks_{false};
  std::atomic<unsigned> count_{0};
};

/// Looking at something is no use of it as long as this object is.
class OnlyLooking {
 public:
  explicit OnlyLooking(StoreWork& work) : work_(work) { work_.only_look(true); }
  OnlyLooking(const OnlyLooking&) = delete;
  OnlyLooking& operator=(const OnlyLooking&) = delete;
  ~OnlyLooking() { work_.only_look(false); }

 private:
  StoreWork& work_;
};

}  // namespace mlenv
