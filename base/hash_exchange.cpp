#include "base/hash_exchange.hpp"

#include <algorithm>
#include <utility>

namespace mlenv {
namespace {

/// What is left of a piece whose partner was shorter: from so much on it is worth another partner.
constexpr std::size_t kWorthAPartner = std::size_t{16} << 10;
constexpr std::size_t kSpareBuffers = 8;

}  // namespace

HashExchange::Stream* HashExchange::partner_of(const Stream& stream) const {
  const auto other = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Stream* one) { return one != &stream; });
  return other == waiting_.end() ? nullptr : *other;
}

ByteView HashExchange::begin(Stream& stream) noexcept {
  std::erase(waiting_, &stream);
  stream.busy_ = true;
  return stream.pieces_.front().rest();
}

void HashExchange::end(Stream& stream, std::size_t count) noexcept {
  stream.busy_ = false;
  stream.held_bytes_ -= count;
  Piece& piece = stream.pieces_.front();
  piece.done += count;
  if (piece.rest().empty()) {
    stream.spare(std::move(piece.bytes));
    stream.pieces_.pop_front();
  }
  if (!stream.pieces_.empty()) waiting_.push_back(&stream);
}

void HashExchange::hash(Lock& lock, Stream& stream, Stream* partner) noexcept {
  const ByteView own = begin(stream);
  const ByteView other = partner == nullptr ? ByteView{} : begin(*partner);
  const std::size_t shorter = std::min(own.size(), other.size());
  const auto part_of = [&](ByteView rest) {
    const bool all = partner == nullptr || rest.size() - shorter < kWorthAPartner;
    return all ? rest : rest.first(shorter);
  };
  const ByteView own_part = part_of(own);
  const ByteView other_part = part_of(other);
  lock.unlock();
  if (partner == nullptr) {
    stream.state_.write(own_part);
  } else {
    Sha256State::write_both(stream.state_, own_part, partner->state_, other_part);
  }
  lock.lock();
  end(stream, own_part.size());
  if (partner != nullptr) end(*partner, other_part.size());
  hashed_.notify_all();
}

bool HashExchange::helps() { return Sha256State::goes_in_step(); }

HashExchange::Stream::Stream(HashExchange& exchange) : exchange_(exchange) {
  spare_.reserve(kSpareBuffers);
  const std::lock_guard lock{exchange_.mutex_};
  exchange_.waiting_.reserve(exchange_.streams_ + 1);
  ++exchange_.streams_;
}

HashExchange::Stream::~Stream() {
  start_again();
  const std::lock_guard lock{exchange_.mutex_};
  --exchange_.streams_;
}

void HashExchange::Stream::spare(Bytes buffer) noexcept {
  if (spare_.size() == kSpareBuffers) return;
  buffer.clear();
  spare_.push_back(std::move(buffer));
}

void HashExchange::Stream::write(Bytes bytes) {
  if (bytes.empty()) return;
  Lock lock{exchange_.mutex_};
  const std::size_t size_bytes = bytes.size();
  pieces_.push_back({std::move(bytes), 0});
  held_bytes_ += size_bytes;
  if (!busy_ && pieces_.size() == 1) exchange_.waiting_.push_back(this);
  while (!pieces_.empty()) {
    Stream* const partner = busy_ ? nullptr : exchange_.partner_of(*this);
    if (partner == nullptr && held_bytes_ <= kHeldBytes && helps()) return;
    if (busy_) {
      idle(lock);
    } else {
      exchange_.hash(lock, *this, partner);
    }
  }
}

void HashExchange::Stream::write_beside(ByteView own, Sha256State& other, ByteView others) {
  {
    Lock lock{exchange_.mutex_};
    settle(lock);
  }
  // Without pieces it is nobody else's.
  Sha256State::write_both(state_, own, other, others);
}

Bytes HashExchange::Stream::buffer() {
  const std::lock_guard lock{exchange_.mutex_};
  if (spare_.empty()) return {};
  Bytes buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void HashExchange::Stream::idle(Lock& lock) {
  exchange_.hashed_.wait(lock, [this] { return !busy_; });
}

void HashExchange::Stream::settle(Lock& lock) {
  idle(lock);
  while (!pieces_.empty()) {
    exchange_.hash(lock, *this, exchange_.partner_of(*this));
    idle(lock);
  }
}

Digest HashExchange::Stream::finish() {
  Lock lock{exchange_.mutex_};
  settle(lock);
  return state_.finish();
}

void HashExchange::Stream::start_again() {
  Lock lock{exchange_.mutex_};
  idle(lock);
  std::erase(exchange_.waiting_, this);
  pieces_.clear();
  held_bytes_ = 0;
  state_.start_again();
}

}  // namespace mlenv
