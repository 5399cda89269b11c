// What base/inflate_stream.cpp does by ISA-L, by zlib.
#include "base/inflate_stream.hpp"

#include <libdeflate.h>
#include <zlib.h>

#include "base/error.hpp"
#include "base/inflate.hpp"

struct inflate_state {
  z_stream stream;
};

namespace mlenv {
namespace {

constexpr int kRawDeflate = -15;  // with the largest window

}  // namespace

StreamInflater::StreamInflater() : state_(std::make_unique<inflate_state>()) {
  if (::inflateInit2(&state_->stream, kRawDeflate) != Z_OK) {
    throw Error{Kind::internal, "no-memory", "no memory to inflate"};
  }
}
StreamInflater::~StreamInflater() { (void)::inflateEnd(&state_->stream); }

void StreamInflater::reset() { (void)::inflateReset(&state_->stream); }

StreamInflater::Step StreamInflater::step(BufferedInput& input, ByteSpan out) {
  z_stream& stream = state_->stream;
  const ByteView rest = input.rest();
  // zlib reads through this pointer only.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
  stream.avail_in = static_cast<uInt>(rest.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = ::inflate(&stream, Z_NO_FLUSH);
  const std::size_t written = out.size() - stream.avail_out;
  // It takes no whole byte beyond the stream's end.
  input.consume(rest.size() - stream.avail_in);
  if (result == Z_STREAM_END) return {State::finished, written};
  // Z_BUF_ERROR: it needs more input, or more room.
  const bool going = result == Z_OK || result == Z_BUF_ERROR;
  return {going ? State::going : State::damaged, written};
}

std::uint32_t crc32(std::uint32_t crc, ByteView data) {
  return libdeflate_crc32(crc, data.data(), data.size());
}

}  // namespace mlenv
