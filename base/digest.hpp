#pragma once
// SHA-256 digests as OCI writes them: `sha256:` and 64 lower-case hex digits
// (image-spec descriptor.md, "Digests").
#include <array>
#include <compare>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.hpp"

namespace mlenv {

/// Well formed by construction: made only by parsing or hashing.
class Digest {
 public:
  /// Throws `bad-digest` (usage) when `text` is not `sha256:<64 hex>`.
  static Digest parse(std::string_view text);
  /// The same from the 64 hex digits alone, as PyPI and Debian write them.
  static Digest from_hex(std::string_view hex);
  /// From the 32 bytes themselves.
  static Digest from_raw(std::span<const unsigned char, 32> raw);
  static Digest of(ByteView data);
  static Digest of(std::string_view text) { return of(as_bytes(text)); }

  std::string str() const { return "sha256:" + hex_; }
  const std::string& hex() const { return hex_; }
  /// First 12 hex digits, for people.
  std::string brief() const { return hex_.substr(0, 12); }

  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;

 private:
  friend class Sha256;
  explicit Digest(std::string hex) : hex_(std::move(hex)) {}
  std::string hex_;
};

/// Incremental SHA-256. `finish` ends it; the object may then only be destroyed.
class Sha256 final : public Sink {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256() override;
  void write(ByteView data) override;
  Digest finish();
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  std::uint64_t size_bytes_ = 0;
};

/// Passes bytes on and, at `finish`, throws `digest-mismatch` unless exactly `size_bytes` bytes
/// with digest `expected` went through. Stops with the same error as soon as more arrive.
class VerifyingSink final : public Sink {
 public:
  VerifyingSink(Sink& next, Digest expected, std::uint64_t size_bytes, std::string what);
  void write(ByteView data) override;
  void finish();

 private:
  Sink& next_;
  Digest expected_;
  std::uint64_t size_bytes_;
  std::string what_;
  Sha256 hash_;
};

/// MD5 in hex: only for the records of dpkg, which knows no other digest of a configuration file.
std::string md5_hex(ByteView data);

}  // namespace mlenv

template <>
struct std::hash<mlenv::Digest> {
  std::size_t operator()(const mlenv::Digest& digest) const noexcept {
    return std::hash<std::string>{}(digest.hex());
  }
};
