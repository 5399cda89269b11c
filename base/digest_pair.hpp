#pragma once
// Two SHA-256 computations in step. A single one waits for the result of each round before the
// next, so that on processors with SHA instructions two together take as long as one: half the time
// for a layer, whose bytes and whose tar are both hashed.
#include <memory>

#include "base/digest.hpp"

namespace mlenv {

class Sha256Pair {
 public:
  Sha256Pair();
  Sha256Pair(const Sha256Pair&) = delete;
  Sha256Pair& operator=(const Sha256Pair&) = delete;
  ~Sha256Pair();

  /// Continues both; either may be empty. What has the same length is hashed in step.
  void write(ByteView first, ByteView second);
  std::uint64_t first_size_bytes() const { return first_size_bytes_; }
  std::uint64_t second_size_bytes() const { return second_size_bytes_; }
  struct Digests {
    Digest first;
    Digest second;
  };
  /// Ends both; the object may then only be destroyed.
  Digests finish();

 private:
  struct States;
  std::unique_ptr<States> states_;
  std::uint64_t first_size_bytes_ = 0;
  std::uint64_t second_size_bytes_ = 0;
};

}  // namespace mlenv
