#include "runner/probe/options.hpp"

#include <charconv>
#include <stdexcept>

namespace mlenv::probe {
namespace {

std::uint64_t number_option(const std::string& option, const std::string& text,
                            std::uint64_t most) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value < 1 || value > most) {
    throw std::invalid_argument(option + " takes a number from 1 to " + std::to_string(most) +
                                "; this is `" + text + "`");
  }
  return value;
}

}  // namespace

Options parse_options(const std::vector<std::string>& words) {
  constexpr std::uint64_t kMostMebibytes = 16384;
  constexpr std::uint64_t kLongest = 86400;
  Options options;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--nccl") {
      options.nccl = true;
      continue;
    }
    if (word == "--across") {
      options.nccl = true;
      options.across = true;
      continue;
    }
    if (word != "--nccl-library" && word != "--size" && word != "--timeout") {
      throw std::invalid_argument("unknown word `" + word +
                                  "`: --nccl, --across, --nccl-library FILE, --size MIB, --timeout "
                                  "SECONDS");
    }
    if (at + 1 == words.size()) throw std::invalid_argument(word + " takes a value");
    const std::string& value = words[++at];
    if (word == "--nccl-library") {
      options.nccl = true;
      options.nccl_library = value;
    } else if (word == "--size") {
      options.mebibytes = number_option(word, value, kMostMebibytes);
    } else {
      options.timeout = std::chrono::seconds(number_option(word, value, kLongest));
    }
  }
  return options;
}

std::vector<std::string> words_of(const Options& options) {
  std::vector<std::string> words = {"--size", std::to_string(options.mebibytes), "--timeout",
                                    std::to_string(options.timeout.count())};
  if (options.nccl) words.emplace_back("--nccl");
  if (options.across) words.emplace_back("--across");
  if (!options.nccl_library.empty()) {
    words.emplace_back("--nccl-library");
    words.push_back(options.nccl_library);
  }
  return words;
}

}  // namespace mlenv::probe
