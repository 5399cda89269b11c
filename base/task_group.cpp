#include "base/task_group.hpp"

#include <utility>

namespace mlenv {

TaskGroup::~TaskGroup() { drain(); }

void TaskGroup::spawn(Pool& pool, std::function<void()> work) {
  {
    const std::lock_guard lock{mutex_};
    ++outstanding_;
  }
  pool.submit([this, work = std::move(work)] {
    std::exception_ptr error;
    if (!failed()) {
      try {
        work();
      } catch (...) {
        error = std::current_exception();
      }
    }
    const std::lock_guard lock{mutex_};
    if (error && !error_) error_ = error;
    // Notified under the lock: the group may be gone as soon as it is free.
    if (--outstanding_ == 0) idle_.notify_all();
  });
}

void TaskGroup::drain() {
  std::unique_lock lock{mutex_};
  idle_.wait(lock, [this] { return outstanding_ == 0; });
}

void TaskGroup::wait() {
  drain();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool TaskGroup::failed() const {
  const std::lock_guard lock{mutex_};
  return error_ != nullptr;
}

}  // namespace mlenv
