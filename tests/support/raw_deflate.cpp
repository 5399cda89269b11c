#include "tests/support/raw_deflate.hpp"

#include <array>
#include <stdexcept>

#include <zlib.h>

namespace mlenv::test {
namespace {

/// zlib reads through this pointer only.
Bytef* input_of(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

std::string zlib_deflate(std::string_view text, int level, int window_bits) {
  z_stream stream{};
  require(deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK,
          "deflateInit2");
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 64, '\0');
  stream.next_in = input_of(text);
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  require(result == Z_STREAM_END, "deflate");
  return out;
}

std::string zlib_inflate(std::string_view data, int window_bits) {
  z_stream stream{};
  require(inflateInit2(&stream, window_bits) == Z_OK, "inflateInit2");
  stream.next_in = input_of(data);
  stream.avail_in = static_cast<uInt>(data.size());
  std::string out;
  std::array<char, 65536> buffer{};
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  const bool all = stream.avail_in == 0;
  inflateEnd(&stream);
  require(result == Z_STREAM_END && all, "inflate");
  return out;
}

}  // namespace mlenv::test
