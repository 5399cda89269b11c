#pragma once
// Threads that hash at the same time help each other: a piece of one stream is hashed in step with
// a piece of another (base/sha256_state.hpp), by whichever thread comes second. Nobody waits for a
// partner: a piece that found none when the next of its stream comes is hashed alone.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "base/sha256_state.hpp"

namespace mlenv {

class HashExchange {
 public:
  class Stream;
  /// Of one stream, without a partner: as much as a thread receives before it is another one's
  /// turn.
  static constexpr std::size_t kHeldBytes = std::size_t{2} << 20;

  HashExchange() = default;
  HashExchange(const HashExchange&) = delete;
  HashExchange& operator=(const HashExchange&) = delete;
  ~HashExchange() = default;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Piece {
    Bytes bytes;
    std::size_t done = 0;
    ByteView rest() const { return ByteView(bytes).subspan(done); }
  };
  /// Hashes the oldest piece of each as far as both go; of `stream` alone where `partner` is null.
  /// Unlocks meanwhile.
  void hash(Lock& lock, Stream& stream, Stream* partner);
  Piece take(Stream& stream);
  void give_back(Stream& stream, Piece piece);
  /// A stream that waits for a partner; null when there is none beside `stream`.
  Stream* partner_of(const Stream& stream) const;

  std::mutex mutex_;
  std::condition_variable hashed_;
  std::deque<Stream*> waiting_;  ///< with pieces, and not being hashed
};

/// One SHA-256 computation, fed by one thread at a time. It must not outlive its exchange.
class HashExchange::Stream {
 public:
  explicit Stream(HashExchange& exchange) : exchange_(exchange) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { start_again(); }

  /// Takes the bytes over, as a piece. Up to `kHeldBytes` are held until later calls.
  void write(Bytes bytes);
  /// At once, in step with `others`, which continue `other`.
  void write_beside(ByteView own, Sha256State& other, ByteView others);
  /// An empty buffer, with the room of a piece that was hashed where there is one.
  Bytes buffer();
  /// Of all that was written. Then only `start_again` may follow.
  Digest finish();
  /// Forgets what was written.
  void start_again();

 private:
  friend class HashExchange;
  void settle(Lock& lock);
  void idle(Lock& lock);

  HashExchange& exchange_;
  Sha256State state_;
  // Guarded by the exchange's mutex, `state_` too while not busy:
  std::deque<Piece> pieces_;
  std::size_t held_bytes_ = 0;  ///< in `pieces_`
  std::vector<Bytes> spare_;
  bool busy_ = false;  ///< somebody hashes a piece of it
};

}  // namespace mlenv
