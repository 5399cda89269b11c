#include "recipes/packed_tables.hpp"

#include <span>

#include "base/inflate.hpp"

namespace mlenv {

std::string unpacked_table(std::string_view packed) {
  // The last four bytes of a gzip file are its size (RFC 1952, ISIZE).
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    size = size << 8U | static_cast<unsigned char>(packed[packed.size() - 1 - i]);
  }
  std::string text(size, '\0');
  gunzip_member(std::as_bytes(std::span(packed)), std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace mlenv
