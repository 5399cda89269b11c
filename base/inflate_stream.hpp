#pragma once
// ISA-L's inflater behind the two things it needs: input that can be refilled, and an exact answer
// to where a stream ended.
#include <memory>
#include <optional>

#include "base/bytes.hpp"
#include "base/inflate.hpp"

struct inflate_state;  // NOLINT(readability-identifier-naming): ISA-L's

namespace mlenv {

inline constexpr std::size_t kStreamBufferBytes = std::size_t{1} << 18;

/// Input in a buffer that is refilled when empty. The last few bytes consumed can be given back,
/// also those of the filling before.
class BufferedInput {
 public:
  static constexpr std::size_t kGiveBack = 8;
  explicit BufferedInput(Source& source)
      : source_(source),
        buffer_(kGiveBack + kStreamBufferBytes),
        rest_(ByteView(buffer_).subspan(kGiveBack, 0)) {}
  ByteView rest() const { return rest_; }
  void consume(std::size_t count) { rest_ = rest_.subspan(count); }
  /// At most kGiveBack bytes that were consumed.
  void give_back(std::size_t count) { rest_ = {rest_.data() - count, rest_.size() + count}; }
  /// Only when `rest` is empty; false at the end of the input.
  bool refill();
  /// The next byte, or -1 at the end of the input.
  int next() {
    if (rest_.empty() && !refill()) return -1;
    const int byte = std::to_integer<int>(rest_.front());
    consume(1);
    return byte;
  }

 private:
  Source& source_;
  Bytes buffer_;
  ByteView rest_;
};

/// Inflates the raw deflate stream that `deflated` starts with, if all of it is there and it fits
/// into `out`; nullopt when not, or when it is malformed.
std::optional<InflatedPart> inflate_part(ByteView deflated, ByteSpan out);

/// Inflates raw deflate streams, one after the other.
class StreamInflater {
 public:
  enum class State { going, finished, damaged };
  struct Step {
    State state = State::going;
    std::size_t written = 0;
  };
  StreamInflater();
  StreamInflater(const StreamInflater&) = delete;
  StreamInflater& operator=(const StreamInflater&) = delete;
  ~StreamInflater();
  /// Makes ready for the next stream.
  void reset();
  /// Inflates what `input` has in its buffer into `out` until one of them is used up: when `out`
  /// was not filled, the next step needs more input. When finished, `input` stands at the first
  /// byte behind the stream.
  Step step(BufferedInput& input, ByteSpan out);

 private:
  std::unique_ptr<inflate_state> state_;
};

}  // namespace mlenv
