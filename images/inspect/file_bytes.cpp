#include "images/inspect/file_bytes.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kReadBlock = std::size_t{16} << 10U;

/// Reads until `out` is full or the file ends.
std::size_t fill_at(int fd, std::uint64_t offset, ByteSpan out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw os_error(errno, "cannot read a file of a layer");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::ptrdiff_t signed_size(std::uint64_t size) { return static_cast<std::ptrdiff_t>(size); }

}  // namespace

bool OpenFileBytes::read(std::uint64_t offset, ByteSpan out) {
  if (offset > size_ || out.size() > size_ - offset) return false;
  if (out.size() >= kReadBlock) return fill_at(fd_, offset, out) == out.size();
  const bool is_here = offset >= block_at_ && offset - block_at_ <= block_.size() &&
                       out.size() <= block_.size() - (offset - block_at_);
  if (!is_here) {
    block_.resize(kReadBlock);
    block_at_ = offset;
    block_.resize(fill_at(fd_, offset, block_));
    if (block_.size() < out.size()) return false;
  }
  std::copy_n(block_.begin() + signed_size(offset - block_at_), out.size(), out.begin());
  return true;
}

PassingBytes::PassingBytes(const std::vector<ByteRange>& kept, std::uint64_t expected) {
  head_.reserve(std::min<std::uint64_t>(expected, kHead));
  if (expected > kHead + kTail) tail_from_ = expected - kTail;
  for (const ByteRange& range : kept) keep(range);
}

void PassingBytes::keep(const ByteRange& range) {
  if (range.size == 0 || range.size > room_) return;
  room_ -= range.size;
  kept_.push_back({range, {}});
}

void PassingBytes::append_tail(ByteView data) {
  if (data.size() >= kTail) {
    tail_.assign(data.end() - signed_size(kTail), data.end());
    return;
  }
  tail_.insert(tail_.end(), data.begin(), data.end());
  if (tail_.size() > 2 * kTail) {
    tail_.erase(tail_.begin(), tail_.end() - signed_size(kTail));
  }
}

void PassingBytes::write(ByteView data) {
  for (Kept& one : kept_) {
    const std::uint64_t begin = one.range.offset + one.bytes.size();
    if (begin < size_ || begin - size_ >= data.size() || one.bytes.size() == one.range.size) {
      continue;
    }
    const ByteView rest = data.subspan(begin - size_);
    const auto count = std::min<std::uint64_t>(rest.size(), one.range.size - one.bytes.size());
    one.bytes.insert(one.bytes.end(), rest.begin(), rest.begin() + signed_size(count));
  }
  const std::size_t to_head = std::min(data.size(), kHead - head_.size());
  head_.insert(head_.end(), data.begin(), data.begin() + signed_size(to_head));
  const std::uint64_t before_tail = size_ < tail_from_ ? tail_from_ - size_ : 0;
  size_ += data.size();
  if (before_tail < data.size()) append_tail(data.subspan(before_tail));
}

bool PassingBytes::read_from(std::uint64_t begin, ByteView bytes, std::uint64_t offset,
                             ByteSpan out) const {
  if (offset < begin || offset - begin > bytes.size()) return false;
  const ByteView rest = bytes.subspan(offset - begin);
  if (rest.size() < out.size()) return false;
  std::copy_n(rest.begin(), out.size(), out.begin());
  return true;
}

bool PassingBytes::read(std::uint64_t offset, ByteSpan out) {
  if (offset > size_ || out.size() > size_ - offset) return false;
  if (read_from(0, head_, offset, out)) return true;
  if (read_from(size_ - tail_.size(), tail_, offset, out)) return true;
  for (const Kept& one : kept_) {
    if (read_from(one.range.offset, one.bytes, offset, out)) return true;
  }
  wanted_.push_back({offset, out.size()});
  return false;
}

}  // namespace mlenv
