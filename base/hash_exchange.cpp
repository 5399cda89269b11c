#include "base/hash_exchange.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace mlenv {
namespace {

/// From so much on, bytes are worth partners, as is what is left where a partner was shorter.
constexpr std::size_t kWorthAPartner = std::size_t{16} << 10;
constexpr std::size_t kSpareBuffers = 8;

}  // namespace

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

HashExchange::Done HashExchange::hash(Lock& lock, Sha256State::Part own,
                                      Sha256State::Part beside) noexcept {
  std::array<Sha256State::Part, Sha256State::kTogether> parts{own};
  std::array<Stream*, Sha256State::kTogether> taken{};
  std::size_t count = 1;
  std::size_t length = own.bytes.size();
  const auto join = [&](Sha256State::Part part, Stream* stream) {
    taken[count] = stream;
    parts[count++] = part;
    length = std::min(length, part.bytes.size());
  };
  if (!beside.bytes.empty()) join(beside, nullptr);
  while (length >= kWorthAPartner && count < parts.size() && !waiting_.empty()) {
    Stream* const stream = waiting_.front();
    join({&stream->state_, begin(*stream)}, stream);
  }
  for (Sha256State::Part& part : std::span(parts).first(count)) {
    if (part.bytes.size() >= length + kWorthAPartner) part.bytes = part.bytes.first(length);
  }
  lock.unlock();
  Sha256State::write_together(std::span(parts).first(count));
  lock.lock();
  for (std::size_t i = 0; i < count; ++i) {
    if (taken[i] != nullptr) end(*taken[i], parts[i].bytes.size());
  }
  hashed_.notify_all();
  return {parts[0].bytes.size(), beside.bytes.empty() ? 0 : parts[1].bytes.size()};
}

HashExchange::Done HashExchange::hash_piece(Lock& lock, Stream& stream,
                                            Sha256State::Part beside) noexcept {
  const ByteView piece = begin(stream);
  const Done done = hash(lock, {&stream.state_, piece}, beside);
  end(stream, done.own);
  return done;
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
  Lock lock{exchange_.mutex_};
  push(lock, std::move(bytes));
}

void HashExchange::Stream::write_copy(ByteView bytes) {
  Lock lock{exchange_.mutex_};
  push_copy(lock, bytes);
}

void HashExchange::Stream::write_beside(ByteView own, Sha256State& other, ByteView others) {
  Lock lock{exchange_.mutex_};
  while (!others.empty()) {
    const Sha256State::Part beside{&other, others};
    if (busy_ && exchange_.waiting_.empty()) {
      idle(lock);
    } else if (!busy_ && !pieces_.empty()) {
      others = others.subspan(exchange_.hash_piece(lock, *this, beside).beside);
    } else if (!busy_ && !own.empty()) {
      const Done done = exchange_.hash(lock, {&state_, own}, beside);
      own = own.subspan(done.own);
      others = others.subspan(done.beside);
    } else {
      others = others.subspan(exchange_.hash(lock, beside, {}).own);
    }
  }
  push_copy(lock, own);
}

void HashExchange::Stream::push_copy(Lock& lock, ByteView bytes) {
  // Without pieces it is nobody else's.
  while (pieces_.empty() && !bytes.empty() &&
         (!exchange_.waiting_.empty() || bytes.size() < kWorthAPartner || !helps())) {
    bytes = bytes.subspan(exchange_.hash(lock, {&state_, bytes}, {}).own);
  }
  if (bytes.empty()) return;
  Bytes piece = take_spare();
  piece.assign(bytes.begin(), bytes.end());
  push(lock, std::move(piece));
}

void HashExchange::Stream::push(Lock& lock, Bytes bytes) {
  if (bytes.empty()) return;
  held_bytes_ += bytes.size();
  // Little ones join the last, unless somebody reads that: partners go as far as the shortest.
  if (bytes.size() < kWorthAPartner && pieces_.size() > (busy_ ? 1U : 0U)) {
    Bytes& last = pieces_.back().bytes;
    last.insert(last.end(), bytes.begin(), bytes.end());
    spare(std::move(bytes));
  } else {
    pieces_.push_back({std::move(bytes), 0});
    if (!busy_ && pieces_.size() == 1) exchange_.waiting_.push_back(this);
  }
  while (!pieces_.empty()) {
    const bool partners = !busy_ && exchange_.waiting_.size() >= Sha256State::kTogether;
    if (!partners && held_bytes_ <= kHeldBytes && helps()) return;
    if (busy_) {
      idle(lock);
    } else {
      exchange_.hash_piece(lock, *this, {});
    }
  }
}

Bytes HashExchange::Stream::buffer() {
  const std::lock_guard lock{exchange_.mutex_};
  return take_spare();
}

Bytes HashExchange::Stream::take_spare() {
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
    exchange_.hash_piece(lock, *this, {});
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
