#pragma once
// The inside of digest_pair and digest_company: SHA-256 states that can be advanced two at once.
#include <cstddef>

// The state must be seen: the older interface shows it, EVP does not.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/digest.hpp"

namespace mlenv {

/// By OpenSSL.
void advance(SHA256_CTX& state, ByteView data);

/// Advances both in step, as far as the processor's instructions allow and both have data; what is
/// left of each is the caller's to hash.
struct Left {
  ByteView first;
  ByteView second;
};
Left advance_two(SHA256_CTX& first, ByteView from, SHA256_CTX& second, ByteView and_from);

/// Ends it.
Digest finished(SHA256_CTX& state);

}  // namespace mlenv
