#include "base/pool.hpp"

#include <algorithm>

#include <sched.h>
#include <exception>
#include <system_error>

#include "base/error.hpp"

namespace mlenv {

unsigned usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<unsigned>(count) : 1;
}

Pool::Pool(unsigned threads) {
  if (threads == 0) threads = usable_processors();
  threads_.reserve(threads);
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    // A limit on processes: fewer threads do the same work.
    if (threads_.empty()) throw os_error(error.code().value(), "cannot start a thread");
  }
}

Pool::~Pool() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    queue_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Pool::submit(std::function<void()> work) {
  {
    const std::lock_guard lock{mutex_};
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void Pool::serve() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock{mutex_};
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

void Pool::for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
  struct State {
    std::mutex mutex;
    std::condition_variable done;
    std::size_t next = 0;
    std::size_t running = 0;
    std::size_t failed_index = 0;
    std::exception_ptr error;
  } state;
  if (count == 0) return;
  auto runner = [&] {
    std::unique_lock lock{state.mutex};
    while (state.next < count && !state.error) {
      const std::size_t index = state.next++;
      lock.unlock();
      std::exception_ptr error;
      try {
        work(index);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && (!state.error || index < state.failed_index)) {
        state.error = error;
        state.failed_index = index;
      }
    }
    --state.running;
    // Notified under the lock: `state` may be gone as soon as it is free.
    if (state.running == 0) state.done.notify_all();
  };
  const std::size_t runners = std::min<std::size_t>(count, size());
  state.running = runners;
  for (std::size_t i = 0; i < runners; ++i) submit(runner);
  std::unique_lock lock{state.mutex};
  state.done.wait(lock, [&] { return state.running == 0; });
  if (state.error) std::rethrow_exception(state.error);
}

}  // namespace mlenv
