#pragma once
// Work that belongs together although it runs on several pools and begets more work.
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

#include "base/pool.hpp"

namespace mlenv {

class TaskGroup {
 public:
  TaskGroup() = default;
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  /// Waits for what was spawned (its results and errors are dropped).
  ~TaskGroup();

  /// Queues `work` on `pool`; tasks may spawn others. After the first exception, work that has not
  /// started is skipped.
  void spawn(Pool& pool, std::function<void()> work);
  /// Waits until nothing is left; rethrows the first exception.
  void wait();
  /// Whether some task failed: long tasks look at it between steps.
  bool failed() const;

 private:
  void drain();
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t outstanding_ = 0;
  std::exception_ptr error_;
};

}  // namespace mlenv
