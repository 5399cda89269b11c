#include "base/digest_company.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/sha256_state.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kWorthWaitingBytes = std::size_t{32} << 10U;
constexpr std::chrono::microseconds kPatience{1000};
constexpr unsigned kMostAlone = 64;

class Company {
 public:
  void advance(SHA256_CTX& state, ByteView data) {
    std::unique_lock lock{mutex_};
    if (waiting_ != nullptr) return hash_both(lock, state, data);
    if (alone_ > 0) {
      --alone_;
    } else {
      data = wait_for_other(lock, state, data);
    }
    lock.unlock();
    mlenv::advance(state, data);
  }

 private:
  struct Waiting {
    SHA256_CTX* state;
    ByteView data;
    bool done = false;
  };

  void hash_both(std::unique_lock<std::mutex>& lock, SHA256_CTX& state, ByteView data) {
    Waiting& other = *std::exchange(waiting_, nullptr);
    lock.unlock();
    const Left left = advance_two(state, data, *other.state, other.data);
    lock.lock();
    other.data = left.second;
    other.done = true;
    lock.unlock();
    hashed_.notify_all();
    mlenv::advance(state, left.first);
  }

  /// What is left to hash alone.
  ByteView wait_for_other(std::unique_lock<std::mutex>& lock, SHA256_CTX& state, ByteView data) {
    Waiting own{&state, data};
    waiting_ = &own;
    hashed_.wait_for(lock, kPatience, [&] { return own.done; });
    if (waiting_ == &own) {  // nobody came: the next ones do not wait so soon
      waiting_ = nullptr;
      fruitless_ = std::min(2 * fruitless_ + 1, kMostAlone);
      alone_ = fruitless_;
      return data;
    }
    hashed_.wait(lock, [&] { return own.done; });
    fruitless_ = 0;
    return own.data;
  }

  std::mutex mutex_;
  std::condition_variable hashed_;
  Waiting* waiting_ = nullptr;
  unsigned fruitless_ = 0;
  unsigned alone_ = 0;  ///< so many pieces are hashed without waiting
};

}  // namespace

void advance_in_company(SHA256_CTX& state, ByteView data) {
  static Company company;
  if (data.size() < kWorthWaitingBytes) return advance(state, data);
  company.advance(state, data);
}

Sha256InCompany::Sha256InCompany() : state_(std::make_unique<SHA256_CTX>()) { restart(); }
Sha256InCompany::~Sha256InCompany() = default;

void Sha256InCompany::restart() { SHA256_Init(state_.get()); }
void Sha256InCompany::write(ByteView data) { advance_in_company(*state_, data); }
Digest Sha256InCompany::finish() { return finished(*state_); }

}  // namespace mlenv
