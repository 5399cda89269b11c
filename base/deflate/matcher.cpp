#include "base/deflate/matcher.hpp"

#include "base/deflate.hpp"

namespace mlenv::deflate {

Matcher::Matcher() : input_(kChunkBytes + kSlack) {}

void Matcher::start(ByteView input) {
  size_ = input.size();
  if (size_ > 0) std::memcpy(input_.data(), input.data(), size_);
  std::fill_n(input_.begin() + static_cast<std::ptrdiff_t>(size_), kSlack, std::uint8_t{0});
  last3_.fill(0);
  last4_.fill(0);
  last8_.fill(0);
}

}  // namespace mlenv::deflate
