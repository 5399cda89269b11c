#pragma once
// Byte views and the two stream interfaces that everything large passes through.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;
using ByteSpan = std::span<std::byte>;

inline constexpr unsigned kByteBits = 8;

inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Source {
 public:
  virtual ~Source() = default;
  /// Fills at most `out.size()` bytes and returns how many; 0 only at the end (or for an empty
  /// out).
  virtual std::size_t read(ByteSpan out) = 0;
};

class Sink {
 public:
  virtual ~Sink() = default;
  /// Takes all of `data` or throws.
  virtual void write(ByteView data) = 0;
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(ByteView data) : rest_(data) {}
  std::size_t read(ByteSpan out) override;

 private:
  ByteView rest_;
};

class StringSink final : public Sink {
 public:
  void write(ByteView data) override { text.append(as_text(data)); }
  std::string text;
};

class FunctionSink final : public Sink {
 public:
  explicit FunctionSink(std::function<void(ByteView)> take) : take_(std::move(take)) {}
  void write(ByteView data) override { take_(data); }

 private:
  std::function<void(ByteView)> take_;
};

/// Copies to the end of `source` through a 1 MiB buffer; returns the byte count.
std::uint64_t copy(Source& source, Sink& sink);

/// Reads all of it; throws `too-large` past `limit` bytes.
std::string read_all(Source& source, std::uint64_t limit);

}  // namespace mlenv
