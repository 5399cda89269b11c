#pragma once
// One pool of threads per command. Results are merged in input order; an exception in one item
// stops the taking of further items and is rethrown to the caller.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace mlenv {

class Pool {
 public:
  /// 0 means one thread per processor that this process may use.
  explicit Pool(unsigned threads = 0);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  /// Waits for what runs; drops what has not started.
  ~Pool();

  unsigned size() const { return static_cast<unsigned>(threads_.size()); }
  /// Queues work; tasks start in the order given. An exception that leaves `work` ends the program:
  /// wrap it (as `for_each` does).
  void submit(std::function<void()> work);
  /// Runs `work(i)` for i in [0, count) and waits for all; rethrows the exception of the lowest
  /// failing index. Must not be called from a task of the same pool.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  void serve();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Processors that this process may use (its affinity mask), at least 1.
unsigned usable_processors();

}  // namespace mlenv
