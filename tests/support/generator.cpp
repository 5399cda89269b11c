#include "tests/support/generator.hpp"

#include <algorithm>
#include <vector>

namespace mlenv::test {

std::uint64_t Generator::next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t value = state_;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

std::string noise(std::size_t size_bytes, std::uint64_t seed) {
  Generator generator{seed};
  std::string bytes;
  bytes.reserve(size_bytes);
  while (bytes.size() < size_bytes) bytes.push_back(static_cast<char>(generator.next() >> 56U));
  return bytes;
}

std::string prose(std::size_t size_bytes, std::uint64_t seed) {
  Generator generator{seed};
  std::vector<std::string> words;
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (std::uint64_t left = 1 + generator.below(10); left > 0; --left) {
      word.push_back(static_cast<char>('a' + std::min(generator.below(26), generator.below(26))));
    }
    words.push_back(word);
  }
  std::string text;
  while (text.size() < size_bytes) {
    const std::uint64_t rank = std::min({generator.below(2000), generator.below(2000),
                                         generator.below(2000), generator.below(2000)});
    text += words[rank];
    text += generator.below(12) == 0 ? '\n' : ' ';
  }
  text.resize(size_bytes);
  return text;
}

std::string records(std::size_t size_bytes, std::uint64_t seed) {
  Generator generator{seed};
  std::string bytes;
  std::uint32_t counter = 0;
  while (bytes.size() < size_bytes) {
    const std::uint64_t kind = generator.below(8);
    if (kind == 0) {
      bytes.append(generator.below(600), '\0');
    } else if (kind == 1 && bytes.size() > 40000) {
      const std::size_t back = 1 + generator.below(40000);
      const std::size_t count = std::min<std::size_t>(back, generator.below(400));
      bytes += bytes.substr(bytes.size() - back, count);
    } else {
      counter += static_cast<std::uint32_t>(generator.below(5));
      for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(counter >> (8 * i)));
      bytes.push_back(static_cast<char>(generator.below(16)));
      bytes.push_back(static_cast<char>(generator.below(256)));
    }
  }
  bytes.resize(size_bytes);
  return bytes;
}

}  // namespace mlenv::test
