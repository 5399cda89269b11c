#include "base/inflate.hpp"

#include <cstring>
#include <memory>

#include <libdeflate.h>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/inflate/decoder.hpp"
#include "base/inflate_stream.hpp"

namespace mlenv {
namespace {

using Decompressor = Owned<libdeflate_free_decompressor>::of<libdeflate_decompressor>;

libdeflate_decompressor* thread_decompressor() {
  thread_local const Decompressor decompressor{libdeflate_alloc_decompressor()};
  if (!decompressor) throw Error{Kind::internal, "no-memory", "no memory to inflate"};
  return decompressor.get();
}

Error bad_deflate(std::string cause) {
  return failure("bad-deflate", "a compressed stream is damaged").because(std::move(cause));
}

}  // namespace

void inflate_whole(ByteView deflated, ByteSpan out) {
  std::byte nothing{};
  std::size_t used = 0;
  const libdeflate_result result = libdeflate_deflate_decompress_ex(
      thread_decompressor(), deflated.data(), deflated.size(), out.empty() ? &nothing : out.data(),
      out.size(), &used, nullptr);
  switch (result) {
    case LIBDEFLATE_SUCCESS:
      break;
    case LIBDEFLATE_SHORT_OUTPUT:
      throw bad_deflate(fmt::format("it holds fewer than the {} bytes promised", out.size()));
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      throw bad_deflate(fmt::format("it holds more than the {} bytes promised", out.size()));
    default:
      throw bad_deflate("it is malformed or ends early");
  }
  if (used != deflated.size()) {
    throw bad_deflate(fmt::format("{} bytes follow its end", deflated.size() - used));
  }
}

InflatedPart gunzip_member(ByteView data, ByteSpan out) {
  InflatedPart part;
  const libdeflate_result result =
      libdeflate_gzip_decompress_ex(thread_decompressor(), data.data(), data.size(), out.data(),
                                    out.size(), &part.used, &part.written);
  if (result == LIBDEFLATE_SUCCESS) return part;
  throw failure("bad-gzip", "a gzip file is damaged")
      .because(result == LIBDEFLATE_INSUFFICIENT_SPACE
                   ? fmt::format("a member holds more than {} bytes", out.size())
                   : "a member is malformed, ends early or does not match its CRC-32");
}

std::optional<InflatedPart> inflate_part(ByteView deflated, ByteSpan out) {
  InflatedPart part;
  const libdeflate_result result =
      libdeflate_deflate_decompress_ex(thread_decompressor(), deflated.data(), deflated.size(),
                                       out.data(), out.size(), &part.used, &part.written);
  if (result != LIBDEFLATE_SUCCESS) return std::nullopt;
  return part;
}

void inflate_stream(Source& in, Sink& out, std::uint64_t size_bytes) {
  using inflate::Decoder;
  const auto decoder = std::make_unique<Decoder>(in);
  std::uint64_t total = 0;
  for (bool done = false; !done;) {
    const Decoder::Part part = decoder->next();
    if (part.state == Decoder::State::malformed) throw bad_deflate("it is malformed");
    if (part.state == Decoder::State::truncated) throw bad_deflate("it ends early");
    total += part.bytes.size();
    if (total > size_bytes) {
      throw bad_deflate(fmt::format("it holds more than the {} bytes promised", size_bytes));
    }
    if (!part.bytes.empty()) out.write(part.bytes);
    done = part.state == Decoder::State::finished;
  }
  if (total != size_bytes) {
    throw bad_deflate(fmt::format("it holds {} bytes where {} were promised", total, size_bytes));
  }
  if (decoder->followed()) throw bad_deflate("bytes follow its end");
}

bool BufferedInput::refill() {
  std::memmove(buffer_.data(), rest_.data() - kGiveBack, kGiveBack);
  const ByteSpan room = ByteSpan(buffer_).subspan(kGiveBack);
  rest_ = room.first(source_.read(room));
  return !rest_.empty();
}

}  // namespace mlenv
