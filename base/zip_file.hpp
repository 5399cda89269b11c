#pragma once
// A zip file as bytes: checked reads and little-endian records. Private to base/zip*.cpp.
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"

namespace mlenv::zip {

/// In 32-bit fields: the value stands in the ZIP64 form (APPNOTE 4.4.1.4).
inline constexpr std::uint32_t kIn64 = 0xFFFFFFFF;

template <typename... Args>
Error bad_zip(fmt::format_string<Args...> format, Args&&... args) {
  return failure("bad-zip", "a zip file is damaged or unsafe")
      .because(printable(fmt::format(format, std::forward<Args>(args)...)));
}

/// Little-endian fields of a record, in order.
class Fields {
 public:
  explicit Fields(ByteView bytes) : rest_(bytes) {}
  std::uint16_t u16() { return static_cast<std::uint16_t>(take(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(take(4)); }
  std::uint64_t u64() { return take(8); }
  ByteView bytes(std::size_t count) {
    if (count > rest_.size()) throw bad_zip("a record is cut short");
    const ByteView front = rest_.first(count);
    rest_ = rest_.subspan(count);
    return front;
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::uint64_t take(std::size_t count) {
    const ByteView raw = bytes(count);
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;)
      value = value << 8U | std::to_integer<std::uint64_t>(raw[i]);
    return value;
  }
  ByteView rest_;
};

class File {
 public:
  explicit File(int fd) : fd_(fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) throw os_error(errno, "cannot read a zip file");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  std::uint64_t size() const { return size_; }
  /// Fills `out` from `offset`.
  void read(std::uint64_t offset, ByteSpan out) const {
    if (offset > size_ || out.size() > size_ - offset)
      throw bad_zip("a record lies outside the file");
    while (!out.empty()) {
      const ssize_t count = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw os_error(errno, "cannot read a zip file");
      if (count == 0) throw bad_zip("the file was cut while it was read");
      out = out.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
  }
  Bytes read(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size_ || count > size_ - offset) throw bad_zip("a record lies outside the file");
    Bytes bytes(static_cast<std::size_t>(count));
    read(offset, bytes);
    return bytes;
  }

 private:
  int fd_;
  std::uint64_t size_ = 0;
};

/// Where the central directory lies.
struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t members = 0;
};

/// From the end record or its ZIP64 form, which must lie right behind the directory and at the very
/// end of the file, and must not contradict each other.
Directory find_directory(const File& file);

}  // namespace mlenv::zip
