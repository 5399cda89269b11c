#include "base/bytes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace mlenv {
namespace {
constexpr std::size_t kCopyBufferBytes = std::size_t{1} << 20;
}  // namespace

std::size_t MemorySource::read(ByteSpan out) {
  const std::size_t count = std::min(out.size(), rest_.size());
  std::copy_n(rest_.begin(), count, out.begin());
  rest_ = rest_.subspan(count);
  return count;
}

std::uint64_t copy(Source& source, Sink& sink) {
  Bytes buffer(kCopyBufferBytes);
  std::uint64_t total = 0;
  while (const std::size_t count = source.read(buffer)) {
    sink.write(ByteView(buffer).first(count));
    total += count;
  }
  return total;
}

std::string read_all(Source& source, std::uint64_t limit) {
  StringSink sink;
  Bytes buffer(std::size_t{1} << 16);
  while (const std::size_t count = source.read(buffer)) {
    if (sink.text.size() + count > limit) {
      throw failure("too-large", "more than {} bytes where less was promised", limit);
    }
    sink.write(ByteView(buffer).first(count));
  }
  return std::move(sink.text);
}

}  // namespace mlenv
