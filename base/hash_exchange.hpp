#pragma once
// Threads that hash at the same time help each other: pieces of three streams are hashed in step
// (base/sha256_state.hpp), by whichever thread comes last. Nobody waits for partners: once a stream
// has so many bytes that found none, they are hashed with as many as there are.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "base/sha256_state.hpp"

namespace mlenv {

class HashExchange {
 public:
  class Stream;
  /// Of one stream, without partners: as much as a thread receives before it is another one's
  /// turn.
  static constexpr std::size_t kHeldBytes = std::size_t{2} << 20;

  /// Whether this processor hashes several in step faster than one after the other.
  static bool helps();

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
  /// How much was hashed of what a caller has.
  struct Done {
    std::size_t own = 0;
    std::size_t beside = 0;
  };
  /// Hashes `own`, `beside` where it has bytes, and pieces that wait for partners, as far as all of
  /// them go. Unlocks meanwhile. Takes no memory: nobody is left waiting for a thread that had
  /// none.
  Done hash(Lock& lock, Sha256State::Part own, Sha256State::Part beside) noexcept;
  /// The same with the oldest piece of `stream`.
  Done hash_piece(Lock& lock, Stream& stream, Sha256State::Part beside) noexcept;
  ByteView begin(Stream& stream) noexcept;
  void end(Stream& stream, std::size_t count) noexcept;

  std::mutex mutex_;
  std::condition_variable hashed_;
  std::size_t streams_ = 0;
  std::vector<Stream*> waiting_;  ///< with pieces, and not being hashed; has room for all
};

/// One SHA-256 computation, fed by one thread at a time. It must not outlive its exchange.
class HashExchange::Stream {
 public:
  explicit Stream(HashExchange& exchange);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// Takes the bytes over, as a piece. Up to `kHeldBytes` are held until later calls.
  void write(Bytes bytes);
  /// The same with a copy of what does not find partners at once.
  void write_copy(ByteView bytes);
  /// The same, and all of `others`, which continue `other`, at once: each other's first partners.
  void write_beside(ByteView own, Sha256State& other, ByteView others);
  /// An empty buffer, with the room of a piece that was hashed where there is one.
  Bytes buffer();
  /// Of all that was written. Then only `start_again` may follow.
  Digest finish();
  /// Forgets what was written.
  void start_again();

 private:
  friend class HashExchange;
  void push(Lock& lock, Bytes bytes);
  void push_copy(Lock& lock, ByteView bytes);
  void settle(Lock& lock);
  void spare(Bytes buffer) noexcept;
  Bytes take_spare();
  void idle(Lock& lock);

  HashExchange& exchange_;
  Sha256State state_;
  // Guarded by the exchange's mutex, `state_` too while not busy:
  std::deque<Piece> pieces_;    ///< the first is the one that is hashed
  std::size_t held_bytes_ = 0;  ///< in `pieces_`
  std::vector<Bytes> spare_;
  bool busy_ = false;  ///< somebody hashes a piece of it
};

}  // namespace mlenv
