#pragma once
// What must hold for any bytes given as a raw DEFLATE stream: our decoder says what zlib says.
#include <stdexcept>
#include <string>

#include <zlib.h>

#include "base/inflate/decoder.hpp"

namespace mlenv::fuzz {

enum class Inflated { whole, followed, truncated, malformed };

struct InflatedText {
  Inflated verdict = Inflated::malformed;
  std::string text;
  friend bool operator==(const InflatedText&, const InflatedText&) = default;
};

/// As zlib's inflate has it, up to `limit` bytes of text.
inline InflatedText by_zlib(ByteView input, std::size_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw std::runtime_error("inflateInit2");
  // zlib reads through this pointer only.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
  stream.avail_in = static_cast<uInt>(input.size());
  InflatedText result;
  result.text.resize(limit);
  stream.next_out = reinterpret_cast<Bytef*>(result.text.data());
  stream.avail_out = static_cast<uInt>(limit);
  const int status = ::inflate(&stream, Z_SYNC_FLUSH);
  result.text.resize(stream.total_out);
  if (status == Z_STREAM_END) {
    result.verdict = stream.avail_in > 0 ? Inflated::followed : Inflated::whole;
  } else if (status == Z_OK || status == Z_BUF_ERROR) {
    result.verdict = Inflated::truncated;
  }
  ::inflateEnd(&stream);
  return result;
}

/// Gives at most `step` bytes at a time.
class PiecewiseSource final : public Source {
 public:
  PiecewiseSource(ByteView bytes, std::size_t step) : source_(bytes), step_(step) {}
  std::size_t read(ByteSpan out) override {
    return source_.read(out.first(std::min(out.size(), step_)));
  }

 private:
  MemorySource source_;
  std::size_t step_;
};

inline InflatedText by_us(ByteView input, std::size_t limit, std::size_t step) {
  constexpr std::size_t kMostAtOnce = std::size_t{256} << 10;
  PiecewiseSource source{input, step};
  inflate::Decoder decoder{source};
  InflatedText result;
  while (result.text.size() <= limit) {
    const inflate::Decoder::Part part = decoder.next();
    if (part.bytes.size() > kMostAtOnce) throw std::logic_error("a part is too large");
    if (part.state == inflate::Decoder::State::malformed) return result;
    if (part.state == inflate::Decoder::State::truncated) {
      result.verdict = Inflated::truncated;
      return result;
    }
    result.text += as_text(part.bytes);
    if (part.state == inflate::Decoder::State::going) continue;
    result.verdict = decoder.followed() ? Inflated::followed : Inflated::whole;
    return result;
  }
  return result;  // longer than anybody looks
}

/// True when the stream is whole.
inline bool one_deflate(ByteView input) {
  constexpr std::size_t kTextLimit = std::size_t{64} << 10;
  const InflatedText expected = by_zlib(input, kTextLimit);
  if (expected.text.size() == kTextLimit) return false;
  const std::size_t step = input.empty() ? 1 : 1 + std::to_integer<std::size_t>(input.back()) * 8;
  const InflatedText found = by_us(input, kTextLimit, step);
  if (found.verdict != expected.verdict) throw std::logic_error("another verdict than zlib's");
  const bool ended = expected.verdict == Inflated::whole || expected.verdict == Inflated::followed;
  if (ended && found.text != expected.text) throw std::logic_error("another text than zlib's");
  return expected.verdict == Inflated::whole;
}

}  // namespace mlenv::fuzz
