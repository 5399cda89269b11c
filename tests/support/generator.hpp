#pragma once
// Test data that is the same on every machine: SplitMix64 and what is made from it.
#include <cstdint>
#include <string>

namespace mlenv::test {

/// SplitMix64 (Steele, Lea and Flood 2014).
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

/// Bytes that nothing can compress.
std::string noise(std::size_t size_bytes, std::uint64_t seed);
/// Lines of words, the short ones often, as source code and prose have them.
std::string prose(std::size_t size_bytes, std::uint64_t seed);
/// Records with slowly changing fields, runs of zeros and copies from further back, as binaries
/// have.
std::string records(std::size_t size_bytes, std::uint64_t seed);

}  // namespace mlenv::test
