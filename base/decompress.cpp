// gunzip by ISA-L; zstd by its own library; xz and bzip2 by libarchive's filters, the only users of
// liblzma and libbz2.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <archive.h>
#include <zstd.h>

#include "base/archive_source.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/inflate.hpp"
#include "base/inflate_stream.hpp"

namespace mlenv {
namespace {

Error bad_gzip(std::string cause) {
  return failure("bad-gzip", "a gzip file is damaged").because(std::move(cause));
}

std::uint32_t little_endian(BufferedInput& input, unsigned bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const int byte = input.next();
    if (byte < 0) throw bad_gzip("it ends early");
    value |= static_cast<std::uint32_t>(byte) << (8 * i);
  }
  return value;
}

void skip_text(BufferedInput& input) {
  while (little_endian(input, 1) != 0) {
  }
}

/// RFC 1952 §2.3; the first byte is `first`.
void read_gzip_header(BufferedInput& input, int first) {
  constexpr std::uint32_t kHeaderCrc = 2;
  constexpr std::uint32_t kExtra = 4;
  constexpr std::uint32_t kName = 8;
  constexpr std::uint32_t kComment = 16;
  constexpr std::uint32_t kReserved = 0xE0;
  if (first != 0x1F || little_endian(input, 1) != 0x8B) {
    throw bad_gzip("no member starts where one should");
  }
  if (little_endian(input, 1) != 8) throw bad_gzip("its compression method is unknown");
  const std::uint32_t flags = little_endian(input, 1);
  if ((flags & kReserved) != 0) throw bad_gzip("its header has unknown flags");
  (void)little_endian(input, 4);  // time
  (void)little_endian(input, 2);  // extra flags, operating system
  if ((flags & kExtra) != 0) {
    for (std::uint32_t left = little_endian(input, 2); left > 0; --left) {
      (void)little_endian(input, 1);
    }
  }
  if ((flags & kName) != 0) skip_text(input);
  if ((flags & kComment) != 0) skip_text(input);
  if ((flags & kHeaderCrc) != 0) (void)little_endian(input, 2);
}

constexpr std::size_t kSmallMember = std::size_t{1} << 16;

/// Inflates members into one buffer, so that many small ones make few writes.
class Gunzip {
 public:
  Gunzip(Source& in, Sink& out) : input_(in), out_(out), buffer_(kStreamBufferBytes) {}

  void run() {
    int first = input_.next();
    if (first < 0) throw bad_gzip("it is empty");
    for (; first >= 0; first = input_.next()) {
      read_gzip_header(input_, first);
      read_member();
    }
    flush();
  }

 private:
  void read_member() {
    std::uint32_t crc = 0;
    std::uint32_t size = 0;
    bool done = false;
    if (last_was_small_) {
      // Spliced layers have members by the hundred thousand: one call each, where that is enough.
      if (buffer_.size() - filled_ < kSmallMember) flush();
      const ByteSpan room = ByteSpan(buffer_).subspan(filled_, kSmallMember);
      const std::optional<InflatedPart> part = inflate_part(input_.rest(), room);
      if (part) {
        input_.consume(part->used);
        crc = crc32(0, room.first(part->written));
        size = static_cast<std::uint32_t>(part->written);
        filled_ += part->written;
        done = true;
      }
    }
    if (!done) inflater_.reset();
    while (!done) {
      if (filled_ == buffer_.size()) flush();
      const ByteSpan room = ByteSpan(buffer_).subspan(filled_);
      const StreamInflater::Step step = inflater_.step(input_, room);
      if (step.state == StreamInflater::State::damaged) throw bad_gzip("a member is malformed");
      crc = crc32(crc, room.first(step.written));
      size += static_cast<std::uint32_t>(step.written);
      filled_ += step.written;
      done = step.state == StreamInflater::State::finished;
      const bool hungry = !done && step.written < room.size();
      if (hungry && !input_.refill()) throw bad_gzip("it ends early");
    }
    last_was_small_ = size <= kSmallMember;
    if (little_endian(input_, 4) != crc) throw bad_gzip("a member's CRC-32 does not match");
    if (little_endian(input_, 4) != size) throw bad_gzip("a member's size does not match");
  }

  void flush() {
    if (filled_ > 0) out_.write(ByteView(buffer_).first(filled_));
    filled_ = 0;
  }

  BufferedInput input_;
  Sink& out_;
  StreamInflater inflater_;
  Bytes buffer_;
  std::size_t filled_ = 0;
  bool last_was_small_ = true;
};

/// A source of which the first bytes were read to look at them.
class PeekedSource final : public Source {
 public:
  explicit PeekedSource(Source& source) : source_(source) {
    while (size_ < head_.size()) {
      const std::size_t count = source_.read(std::span(head_).subspan(size_));
      if (count == 0) break;
      size_ += count;
    }
  }
  ByteView head() const { return ByteView(head_).first(size_); }
  std::size_t read(ByteSpan out) override {
    if (used_ == size_) return source_.read(out);
    const std::size_t count = std::min(out.size(), size_ - used_);
    std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(used_), count, out.begin());
    used_ += count;
    return count;
  }

 private:
  Source& source_;
  std::array<std::byte, 6> head_{};
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

using ZstdStream = Owned<ZSTD_freeDStream>::of<ZSTD_DStream>;

void unzstd(Source& in, Sink& out) {
  const ZstdStream stream{ZSTD_createDStream()};
  if (!stream) throw Error{Kind::internal, "no-memory", "no memory to decompress"};
  Bytes raw(kStreamBufferBytes);
  Bytes buffer(kStreamBufferBytes);
  ZSTD_inBuffer input{raw.data(), 0, 0};
  std::size_t expected = 0;  // 0 exactly at the end of a frame
  bool full = false;
  while (true) {
    if (input.pos == input.size && !full) {
      input = {raw.data(), in.read(raw), 0};
      if (input.size == 0) break;
    }
    ZSTD_outBuffer output{buffer.data(), buffer.size(), 0};
    expected = ZSTD_decompressStream(stream.get(), &output, &input);
    if (ZSTD_isError(expected) != 0U) {
      throw failure("bad-zstd", "a zstd file is damaged").because(ZSTD_getErrorName(expected));
    }
    // At the end of a frame nothing is held back, however full the buffer is.
    full = output.pos == output.size && expected != 0;
    if (output.pos > 0) out.write(ByteView(buffer).first(output.pos));
  }
  if (expected != 0) {
    throw failure("bad-zstd", "a zstd file is damaged").because("it ends early");
  }
}

void unfilter(Source& in, Sink& out, int filter, std::string code, std::string headline) {
  ArchiveReader reader{in, std::move(code), std::move(headline)};
  archive_read_append_filter(reader.get(), filter);
  archive_read_support_format_raw(reader.get());
  archive_read_support_format_empty(reader.get());
  reader.open();
  if (!reader.next()) return;
  ArchiveData data = reader.data();
  copy(data, out);
}

void unxz(Source& in, Sink& out) {
  unfilter(in, out, ARCHIVE_FILTER_XZ, "bad-xz", "an xz file is damaged");
}

bool starts_with(ByteView bytes, std::string_view magic) {
  return as_text(bytes).starts_with(magic);
}

}  // namespace

void gunzip(Source& in, Sink& out) { Gunzip{in, out}.run(); }

void unbzip2(Source& in, Sink& out) {
  constexpr const char* kCode = "bad-bzip2";
  unfilter(in, out, ARCHIVE_FILTER_BZIP2, kCode, "a bzip2 file is damaged");
}

void decompress(Source& in, Sink& out) {
  using namespace std::string_view_literals;
  PeekedSource source{in};
  const ByteView head = source.head();
  // A zstd file may start with a skippable frame (RFC 8878 §3.1.2).
  const bool skippable = head.size() >= 4 && starts_with(head.subspan(1), "\x2A\x4D\x18"sv) &&
                         (head[0] & std::byte{0xF0}) == std::byte{0x50};
  if (starts_with(head, "\x1F\x8B"sv)) {
    gunzip(source, out);
  } else if (starts_with(head, "\x28\xB5\x2F\xFD"sv) || skippable) {
    unzstd(source, out);
  } else if (starts_with(head, "\xFD\x37zXZ\0"sv)) {
    unxz(source, out);
  } else {
    copy(source, out);
  }
}

}  // namespace mlenv
