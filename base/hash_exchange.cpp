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

HashExchange::Piece HashExchange::take(Stream& stream) {
  std::erase(waiting_, &stream);
  stream.busy_ = true;
  Piece piece = std::move(stream.pieces_.front());
  stream.pieces_.pop_front();
  stream.held_bytes_ -= piece.rest().size();
  return piece;
}

void HashExchange::give_back(Stream& stream, Piece piece) {
  stream.busy_ = false;
  if (!piece.rest().empty()) {
    stream.held_bytes_ += piece.rest().size();
    stream.pieces_.push_front(std::move(piece));
  } else if (stream.spare_.size() < kSpareBuffers) {
    piece.bytes.clear();
    stream.spare_.push_back(std::move(piece.bytes));
  }
  if (!stream.pieces_.empty()) waiting_.push_back(&stream);
}

void HashExchange::hash(Lock& lock, Stream& stream, Stream* partner) {
  Piece own = take(stream);
  Piece other = partner == nullptr ? Piece{} : take(*partner);
  const std::size_t shorter = std::min(own.rest().size(), other.rest().size());
  const auto now = [&](Piece& piece) {
    const ByteView rest = piece.rest();
    const bool all = partner == nullptr || rest.size() - shorter < kWorthAPartner;
    const ByteView part = all ? rest : rest.first(shorter);
    piece.done += part.size();
    return part;
  };
  const ByteView own_part = now(own);
  const ByteView other_part = now(other);
  lock.unlock();
  if (partner == nullptr) {
    stream.state_.write(own_part);
  } else {
    Sha256State::write_both(stream.state_, own_part, partner->state_, other_part);
  }
  lock.lock();
  give_back(stream, std::move(own));
  if (partner != nullptr) give_back(*partner, std::move(other));
  hashed_.notify_all();
}

void HashExchange::Stream::write(Bytes bytes) {
  if (bytes.empty()) return;
  Lock lock{exchange_.mutex_};
  held_bytes_ += bytes.size();
  pieces_.push_back({std::move(bytes), 0});
  if (!busy_ && pieces_.size() == 1) exchange_.waiting_.push_back(this);
  while (!pieces_.empty()) {
    Stream* const partner = busy_ ? nullptr : exchange_.partner_of(*this);
    if (partner == nullptr && held_bytes_ <= kHeldBytes) return;
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
