// What nobody needs any more, found and taken away. What is taken for needed too much goes another
// time; the other way would be a loss.
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/digest_scan.hpp"
#include "base/error.hpp"
#include "images/store.hpp"
#include "images/store_folder.hpp"
#include "images/store_inventory.hpp"

namespace mlenv {
namespace {

using Clock = std::chrono::system_clock;

/// A key that is gone costs a build step, which is worth more than its room.
constexpr std::chrono::hours kKeysStay{30 * 24};
/// Between the clock and what a file system says of the time.
constexpr std::chrono::minutes kMargin{5};

bool means_full(int error) { return error == ENOSPC || error == EDQUOT; }

class Collector {
 public:
  Collector(StoreFolder& folder, const GarbageSettings& settings)
      : folder_(folder), settings_(settings) {}

  Garbage run() {
    if (settings_.keep) measure_trees();
    {
      const FileLock lock = folder_.work().keep_others_out();
      if (!settings_.only_look) has_folder_ = make_folder();
      choose();
      if (!settings_.only_look) take_away();
    }
    // Nobody sees them any more, so nobody waits.
    for (Taken& one : taken_) remove(one);
    if (!settings_.only_look) tell_what_is_left();
    if (settings_.only_look) {
      for (const Thing& thing : chosen_) count(share_of(thing), tree_bytes(thing));
      for (const Key& key : keys_) count(garbage_.keys, key.bytes);
    }
    for (const auto& [share, thing] : held_) count(*share, tree_bytes(thing));
    return std::move(garbage_);
  }

 private:
  /// Out of everybody's sight, and to be removed.
  struct Taken {
    fs::path path;
    Thing thing;
  };

  // --- choosing --------------------------------------------------------------------------------

  /// Before others have to wait: what comes meanwhile is not counted.
  void measure_trees() {
    for (const fs::path& path : list_folder(folder_.root() / "trees")) {
      if (const auto digest = digest_of_name(path)) measured_[*digest] = bytes_of_tree(path);
    }
  }

  std::uint64_t tree_bytes(const Thing& thing) const {
    if (thing.kind != StoreFolder::Item::tree) return thing.bytes;
    const auto found = measured_.find(thing.digest);
    return found != measured_.end() ? found->second : bytes_of_tree(folder_.tree(thing.digest));
  }

  /// First who lives, then what is needed: whoever ends between the two has said what it leaves.
  void choose() {
    Inventory inventory{folder_};
    const UseTime until = latest_use();
    std::set<Digest> marked;
    for (const Digest& one : digests_below("names")) inventory.mark(one, marked);
    for (const Digest& one : living_needs_) inventory.mark(one, marked);
    const std::set<Digest> by_names = marked;
    if (settings_.needed) {
      for (const Digest& one : settings_.needed()) inventory.mark(one, marked);
    }
    const std::set<Digest> with_runs = marked;
    if (!settings_.forget_history) {
      for (const Digest& one : digests_below("history")) inventory.mark(one, marked);
    }
    std::vector<Digest> unneeded;
    for (const auto& [digest, thing] : inventory.things()) {
      if (settings_.keep) total_ += tree_bytes(thing);
      if (!marked.contains(digest)) {
        unneeded.push_back(digest);
      } else if (!by_names.contains(digest)) {
        hold(with_runs.contains(digest) ? garbage_.for_runs : garbage_.for_history, thing);
      }
    }
    for (const Digest& digest : unneeded) inventory.pass_on_use(digest);
    sort_out(inventory, marked, until);
    const std::vector<Key> keys = all_keys();
    for (const Key& key : keys) total_ += key.bytes;
    leave_what_has_room();
    choose_keys(keys, until);
  }

  void sort_out(Inventory& inventory, const std::set<Digest>& needed, UseTime until) {
    for (const auto& [digest, thing] : inventory.things()) {
      if (needed.contains(digest)) continue;
      if (thing.used > until) {
        hold(garbage_.spared, thing);
        continue;
      }
      chosen_.push_back(thing);
      if (inventory.is_manifest(thing)) manifests_.insert(digest);
    }
  }

  struct Key {
    fs::path path;
    UseTime used;
    std::uint64_t bytes = 0;
  };

  std::vector<Key> all_keys() const {
    std::vector<Key> keys;
    for (const fs::path& path : list_folder(folder_.root() / "keys")) {
      if (!digest_of_name(path)) continue;
      struct stat status {};
      if (::lstat(path.c_str(), &status) != 0) continue;
      keys.push_back({path, Clock::from_time_t(status.st_mtime), bytes_of_file(status)});
    }
    return keys;
  }

  /// Of the names, or what they meant before.
  std::vector<Digest> digests_below(const char* folder) const {
    std::vector<Digest> found;
    for (const fs::path& file : list_folder(folder_.root() / folder)) {
      add_digests_in_file(file, found);
    }
    return found;
  }

  /// What was used later stays.
  UseTime latest_use() {
    UseTime until = Clock::now();
    // Uses are known to the hour.
    if (settings_.unused_for.count() > 0) until -= settings_.unused_for + StoreWork::kGrain;
    for (const StoreWork::Living& one : folder_.work().living()) {
      if (one.needs) {
        for (Digest& digest : digests_in(*one.needs)) living_needs_.push_back(std::move(digest));
        continue;
      }
      if (!garbage_.held_since || one.since < *garbage_.held_since) garbage_.held_since = one.since;
      until = std::min(until, one.since - StoreWork::kGrain - kMargin);
    }
    return until;
  }

  void hold(Garbage::Share& share, const Thing& thing) { held_.emplace_back(&share, thing); }

  /// What was used longest ago comes first; of what was used at one time that which needs others
  /// before those.
  void leave_what_has_room() {
    const auto rank = [&](const Thing& thing) {
      return std::tuple(thing.used, !manifests_.contains(thing.digest), !thing.is_text,
                        thing.kind != StoreFolder::Item::spliced);
    };
    std::stable_sort(chosen_.begin(), chosen_.end(),
                     [&](const Thing& a, const Thing& b) { return rank(a) < rank(b); });
    if (!settings_.keep) return;
    std::size_t wanted = 0;
    for (; wanted < chosen_.size() && total_ > *settings_.keep; ++wanted) {
      total_ -= std::min(total_, tree_bytes(chosen_[wanted]));
    }
    for (std::size_t i = wanted; i < chosen_.size(); ++i) hold(garbage_.spared, chosen_[i]);
    chosen_.erase(chosen_.begin() + static_cast<std::ptrdiff_t>(wanted), chosen_.end());
  }

  /// Those that lead to what goes, and those that nobody asked for.
  void choose_keys(const std::vector<Key>& keys, UseTime until) {
    std::set<Digest> gone;
    for (const Thing& thing : chosen_) gone.insert(thing.digest);
    const UseTime latest = std::min(until, Clock::now() - kKeysStay);
    for (const Key& key : keys) {
      std::vector<Digest> leads_to;
      add_digests_in_file(key.path, leads_to);
      const bool leads_nowhere = std::any_of(leads_to.begin(), leads_to.end(),
                                             [&](const Digest& one) { return gone.contains(one); });
      if (leads_nowhere || key.used <= latest) keys_.push_back(key);
    }
  }

  // --- taking away -----------------------------------------------------------------------------

  /// False where a disk is so full that it has no room for one more folder.
  bool make_folder() {
    try {
      folder_.work().make_while_others_wait();
      return true;
    } catch (const Error& error) {
      if (error.code() != "no-space") throw;
      return false;
    }
  }

  void take_away() {
    for (const Thing& thing : chosen_) {
      take(thing);
      folder_.marks().clear(thing.kind, thing.digest);
    }
    for (const Key& key : keys_) {
      const int error = ::unlink(key.path.c_str()) == 0 ? 0 : errno;
      if (error == 0) {
        count(garbage_.keys, key.bytes);
      } else if (error != ENOENT) {
        stuck(key.path, error);
        count(garbage_.stuck, key.bytes);
      }
    }
  }

  /// On a disk that is full nothing may be made, not even a longer folder: files go at once then,
  /// and trees into `tmp`, from where the next command takes them, if not we.
  void take(const Thing& thing) {
    const fs::path path = folder_.place(thing.kind, thing.digest);
    int error = ENOSPC;
    if (has_folder_) {
      error = rename_to(path, folder_.work().fresh("garbage"), thing);
    }
    if (means_full(error) && thing.kind == StoreFolder::Item::tree) {
      error = rename_to(path, folder_.root() / "tmp" / ("garbage-" + thing.digest.hex()), thing);
    } else if (means_full(error)) {
      error = ::unlink(path.c_str()) == 0 ? 0 : errno;
      if (error == 0) removed(thing, thing.bytes);
    }
    if (error == 0 || error == ENOENT) return;
    stuck(path, error);
    hold(garbage_.stuck, thing);
  }

  int rename_to(const fs::path& path, const fs::path& away, const Thing& thing) {
    if (::rename(path.c_str(), away.c_str()) != 0) return errno;
    taken_.push_back({away, thing});
    return 0;
  }

  void stuck(const fs::path& path, int error) { stuck(path, errno_text(error)); }
  void stuck(const fs::path& path, const std::string& why) {
    if (!garbage_.stuck_because.empty()) return;
    garbage_.stuck_because = fmt::format("`{}`: {}", path.string(), why);
  }

  /// Unfinished work of dead processes.
  void tell_what_is_left() {
    for (const StoreWork::Left& one : folder_.work().left()) {
      stuck(one.folder, one.why);
      count(garbage_.stuck, bytes_of_tree(one.folder));
    }
  }

  void remove(const Taken& one) {
    const bool is_tree = one.thing.kind == StoreFolder::Item::tree;
    const std::uint64_t bytes = is_tree ? bytes_of_tree(one.path) : one.thing.bytes;
    const std::string why = remove_work(one.path);
    if (is_there(one.path)) {
      stuck(one.path, why);
      count(garbage_.stuck, bytes);
    } else {
      removed(one.thing, bytes);
    }
  }

  void removed(const Thing& thing, std::uint64_t bytes) {
    count(share_of(thing), bytes);
    if (settings_.freed) settings_.freed(bytes);
  }

  Garbage::Share& share_of(const Thing& thing) {
    if (thing.kind == StoreFolder::Item::tree) return garbage_.trees;
    return manifests_.contains(thing.digest) ? garbage_.images : garbage_.blobs;
  }

  static void count(Garbage::Share& share, std::uint64_t bytes) {
    ++share.count;
    share.bytes += bytes;
  }

  StoreFolder& folder_;
  const GarbageSettings& settings_;
  Garbage garbage_;
  std::map<Digest, std::uint64_t> measured_;  ///< trees
  std::vector<Digest> living_needs_;
  std::uint64_t total_ = 0;
  std::vector<Thing> chosen_;
  std::set<Digest> manifests_;  ///< of the chosen ones
  std::vector<Key> keys_;       ///< that go
  std::vector<std::pair<Garbage::Share*, Thing>> held_;
  bool has_folder_ = false;
  std::vector<Taken> taken_;
};

}  // namespace

Garbage Store::collect_garbage(const GarbageSettings& settings) const {
  return Collector{*folder_, settings}.run();
}

}  // namespace mlenv
