#pragma once
// Data sets of a job on this node: one after another is looked for, and what is lacking is taken
// from the controller into the store (data_work.hpp). What came is kept when the agent ends, and
// the next one goes on from there. Agents on one store wait for each other, so that it comes there
// once.
//
// It waits for nothing: its owner polls, and has processes do what takes long.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "images/store.hpp"
#include "runner/job/channel.hpp"
#include "runner/local/detached.hpp"
#include "runner/node/data_work.hpp"

namespace mlenv::job {

class DataIntake {
 public:
  /// What it has its owner do.
  struct Owner {
    std::function<void(const std::vector<std::string>& words)> work;  ///< `answered` follows
    std::function<void(const OfferedBlob& list)> fetch_list;          ///< `list_is_there` follows
  };
  DataIntake(Channel& channel, Store& store, Owner owner);

  // All of these throw what goes wrong; whoever catches that calls `forget`.
  /// In place of what was offered before.
  void offer(const OfferData& offer);
  /// Looks whether what somebody else is at is free now.
  void tick();
  void answered(const std::string& answer);
  void list_is_there();
  /// Bytes that come next are of this one. Throws `bad-stream` for another file than the next.
  void begin(const BeginBlob& begin);
  void take(std::string_view bytes);
  void forget();

  /// Mounts the data that is there, before all else, as a run on one machine has it.
  void add_to(DetachedRun& run) const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Step { nothing, locking, looking, listing, taking, finishing };

  const DataSet& set() const { return sets_[at_]; }
  DataNames names() const;
  void next_set();
  void start_work(const char* what);
  void take_in(const WantData& want);
  void next_file();
  void end_file();
  void done(DataPlace place);

  Channel& channel_;
  Store& store_;
  Owner owner_;
  std::vector<DataSet> sets_;
  std::vector<DataPlace> places_;  ///< of those before `at_`
  std::size_t at_ = 0;
  Step step_ = Step::nothing;
  std::optional<FileLock> lock_;
  Clock::time_point began_{};
  DataList list_;
  std::vector<DataRange> ranges_;  ///< what is left to come
  const DataFile* file_ = nullptr;
  Fd fd_;
  std::uint64_t offset_ = 0;
  std::uint64_t part_left_ = 0;  ///< of what was begun
  std::uint64_t sent_ = 0;
  int rounds_ = 0;
};

}  // namespace mlenv::job
