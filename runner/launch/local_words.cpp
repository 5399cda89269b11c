#include "runner/launch/local_words.hpp"

#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"

namespace mlenv::job {
namespace {

std::size_t node_number(const std::string& word) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) {
    throw Error{Kind::internal, "bug", "a number of a local node is none"};
  }
  return number;
}

}  // namespace

std::string name_of(std::size_t node) { return fmt::format("n{}", node + 1); }

std::vector<std::string> render(const LocalNode& node) {
  std::vector<std::string> words;
  for (const std::size_t number :
       {node.index, node.count, std::size_t{node.range.first}, std::size_t{node.range.second},
        node.start, std::size_t{node.own_users ? 1U : 0U}}) {
    words.push_back(std::to_string(number));
  }
  words.insert(words.end(), node.agent.begin(), node.agent.end());
  return words;
}

LocalNode parse_local_node(const std::vector<std::string>& words) {
  constexpr std::size_t kNumbers = 6;
  if (words.size() <= kNumbers) throw Error{Kind::internal, "bug", "a local node without an agent"};
  LocalNode node;
  node.index = node_number(words[0]);
  node.count = node_number(words[1]);
  node.range = {static_cast<std::uint8_t>(node_number(words[2])),
                static_cast<std::uint8_t>(node_number(words[3]))};
  node.start = node_number(words[4]);
  node.own_users = node_number(words[5]) != 0;
  node.agent.assign(words.begin() + kNumbers, words.end());
  return node;
}

std::string hosts_file(std::size_t count, AddressRange range) {
  std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
  for (std::size_t node = 0; node < count; ++node) {
    text += fmt::format("{} {}\n", shown(range.of(node)), name_of(node));
  }
  return text;
}

}  // namespace mlenv::job
