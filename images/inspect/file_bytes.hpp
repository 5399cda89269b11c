#pragma once
// A file of an image by offset, whether it lies in an unpacked tree or streams by in a layer's tar.
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"

namespace mlenv {

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

class FileBytes {
 public:
  virtual ~FileBytes() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills `out`; false where it reaches beyond the end, or the bytes are not at hand.
  virtual bool read(std::uint64_t offset, ByteSpan out) = 0;
};

/// Of an open file; small reads near each other cost one call.
class OpenFileBytes final : public FileBytes {
 public:
  OpenFileBytes(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
  std::uint64_t size() const override { return size_; }
  bool read(std::uint64_t offset, ByteSpan out) override;

 private:
  int fd_;
  std::uint64_t size_;
  Bytes block_;
  std::uint64_t block_at_ = 0;
};

/// What was kept of a file that passed: its beginning, its end, and chosen ranges. Reading others
/// notes that they are wanted, for a second pass.
class PassingBytes final : public FileBytes, public Sink {
 public:
  static constexpr std::size_t kHead = std::size_t{24} << 20U;
  static constexpr std::size_t kTail = std::size_t{8} << 20U;
  static constexpr std::uint64_t kMostKept = std::uint64_t{16} << 20U;  ///< of chosen ranges

  /// Also keeps these. `expected`: the size that the file will have, so that what comes before its
  /// end is not copied; 0 where it is not told. Of a file of another size less may be at hand.
  explicit PassingBytes(const std::vector<ByteRange>& kept, std::uint64_t expected = 0);
  void write(ByteView data) override;
  std::uint64_t size() const override { return size_; }
  bool read(std::uint64_t offset, ByteSpan out) override;
  /// Keeps a range too, as far as it has not passed; what is too much together is not kept.
  void keep(const ByteRange& range);
  ByteView head() const { return head_; }
  /// Ranges that `read` was asked for in vain.
  const std::vector<ByteRange>& wanted() const { return wanted_; }

 private:
  void append_tail(ByteView data);
  bool read_from(std::uint64_t begin, ByteView bytes, std::uint64_t offset, ByteSpan out) const;

  std::uint64_t size_ = 0;
  std::uint64_t tail_from_ = kHead;  ///< where the tail begins, at the earliest
  Bytes head_;
  Bytes tail_;
  struct Kept {
    ByteRange range;
    Bytes bytes;
  };
  std::vector<Kept> kept_;
  std::uint64_t room_ = kMostKept;
  std::vector<ByteRange> wanted_;
};

}  // namespace mlenv
