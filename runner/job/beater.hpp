#pragma once
// Says beats (LinkSettings::beat) for a loop that is held up, as by a disk that stalls while ranks'
// output is written there: its process is well, and so is the job. A thread, which says nothing as
// long as the loop does.
//
// Not for ever: a loop that is held up for longer than `most` will not come back, and the other
// side may take it for dead.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runner/job/channel.hpp"

namespace mlenv::job {

class Beater {
 public:
  using Clock = Channel::Clock;
  static constexpr std::chrono::minutes kMost{5};

  explicit Beater(std::chrono::milliseconds beat, std::chrono::milliseconds most = kMost);
  Beater(const Beater&) = delete;
  Beater& operator=(const Beater&) = delete;
  ~Beater();

  /// Until it is removed, which comes before its end. What comes twice, or is not there, changes
  /// nothing. Where no thread can be started the loop has to do.
  void add(Channel& channel);
  void remove(Channel& channel);
  /// The loop goes on: at least twice in a beat.
  void turn();

  /// Whether somebody has to speak for a loop that took its last turn so long ago. Plain.
  static bool speaks(Clock::duration held_up, std::chrono::milliseconds beat,
                     std::chrono::milliseconds most);

 private:
  void serve();

  std::chrono::milliseconds beat_;
  std::chrono::milliseconds most_;
  std::mutex mutex_;
  std::condition_variable ends_;
  std::vector<Channel*> channels_;
  Clock::time_point turned_ = Clock::now();
  bool ending_ = false;
  std::optional<std::thread> thread_;
};

}  // namespace mlenv::job
