#include "base/inflate_stream.hpp"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include "base/inflate.hpp"

namespace mlenv {

StreamInflater::StreamInflater() : state_(std::make_unique<inflate_state>()) {
  isal_inflate_init(state_.get());
}
StreamInflater::~StreamInflater() = default;

void StreamInflater::reset() { isal_inflate_reset(state_.get()); }

StreamInflater::Step StreamInflater::step(BufferedInput& input, ByteSpan out) {
  const ByteView rest = input.rest();
  // ISA-L reads through this pointer only.
  state_->next_in = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(rest.data()));
  state_->avail_in = static_cast<std::uint32_t>(rest.size());
  state_->next_out = reinterpret_cast<std::uint8_t*>(out.data());
  state_->avail_out = static_cast<std::uint32_t>(out.size());
  const int result = isal_inflate(state_.get());
  const std::size_t written = out.size() - state_->avail_out;
  const bool idle = written == 0 && !rest.empty() && state_->avail_in == rest.size();
  input.consume(rest.size() - state_->avail_in);
  const bool finished = state_->block_state == ISAL_BLOCK_FINISH;
  if ((result != ISAL_DECOMP_OK && result != ISAL_END_INPUT) || (idle && !finished)) {
    return {State::damaged, written};
  }
  if (!finished) return {State::going, written};
  // Whole bytes that it loaded but did not need belong to what follows.
  input.give_back(static_cast<std::size_t>(state_->read_in_length) / 8);
  return {State::finished, written};
}

std::uint32_t crc32(std::uint32_t crc, ByteView data) {
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

}  // namespace mlenv
