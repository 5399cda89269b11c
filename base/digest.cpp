#include "base/digest.hpp"

#include <algorithm>

#include <openssl/evp.h>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/text.hpp"
#include "base/vector_registers.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAlgorithmPrefix = "sha256:";
constexpr std::size_t kHexLength = 64;

bool is_lower_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

std::string to_hex(std::span<const unsigned char> raw) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(raw.size() * 2);
  for (const unsigned char byte : raw) {
    hex.push_back(kDigits[byte >> 4U]);
    hex.push_back(kDigits[byte & 15U]);
  }
  return hex;
}

}  // namespace

Digest Digest::parse(std::string_view text) {
  if (!text.starts_with(kAlgorithmPrefix)) {
    throw usage_error("bad-digest", "`{}` is not a digest: it should be sha256: and 64 hex digits",
                      text);
  }
  return from_hex(text.substr(kAlgorithmPrefix.size()));
}

Digest Digest::from_hex(std::string_view hex) {
  if (hex.size() != kHexLength || !std::all_of(hex.begin(), hex.end(), is_lower_hex)) {
    throw usage_error("bad-digest", "`{}` is not a SHA-256 digest: 64 lower-case hex digits needed",
                      hex);
  }
  return Digest{std::string(hex)};
}

Digest Digest::from_raw(std::span<const unsigned char, 32> raw) { return Digest{to_hex(raw)}; }

Digest Digest::of(ByteView data) {
  Sha256 hash;
  hash.write(data);
  return hash.finish();
}

struct Sha256::Context {
  Owned<EVP_MD_CTX_free>::of<EVP_MD_CTX> handle{EVP_MD_CTX_new()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (!context_->handle || EVP_DigestInit_ex(context_->handle.get(), EVP_sha256(), nullptr) != 1) {
    throw Error{Kind::internal, "hash", "cannot start a SHA-256 computation"};
  }
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::write(ByteView data) {
  clear_upper_halves();
  if (EVP_DigestUpdate(context_->handle.get(), data.data(), data.size()) != 1) {
    throw Error{Kind::internal, "hash", "cannot continue a SHA-256 computation"};
  }
  size_bytes_ += data.size();
}

Digest Sha256::finish() {
  std::array<unsigned char, 32> raw{};
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(context_->handle.get(), raw.data(), &length) != 1) {
    throw Error{Kind::internal, "hash", "cannot finish a SHA-256 computation"};
  }
  return Digest{to_hex(raw)};
}

VerifyingSink::VerifyingSink(Sink& next, Digest expected, std::uint64_t size_bytes,
                             std::string what)
    : next_(next),
      expected_(std::move(expected)),
      size_bytes_(size_bytes),
      what_(std::move(what)) {}

void VerifyingSink::write(ByteView data) {
  if (hash_.size_bytes() + data.size() > size_bytes_) {
    throw failure("digest-mismatch", "`{}` is longer than the {} bytes promised", what_,
                  size_bytes_);
  }
  hash_.write(data);
  next_.write(data);
}

void VerifyingSink::finish() {
  const std::uint64_t size = hash_.size_bytes();
  const Digest found = hash_.finish();
  if (size != size_bytes_) {
    throw failure("digest-mismatch", "`{}` has {} bytes where {} were promised", what_, size,
                  size_bytes_);
  }
  if (found != expected_) {
    throw failure("digest-mismatch", "`{}` is not what was promised", what_)
        .because(fmt::format("needs {}, found {}", expected_.str(), found.str()));
  }
}

std::string md5_hex(ByteView data) {
  std::array<unsigned char, 16> raw{};
  unsigned int length = 0;
  if (EVP_Digest(data.data(), data.size(), raw.data(), &length, EVP_md5(), nullptr) != 1) {
    throw Error{Kind::internal, "hash", "cannot compute an MD5 digest"};
  }
  return to_hex(raw);
}

}  // namespace mlenv
