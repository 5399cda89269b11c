#include "runner/node/hosts.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace mlenv::job {
namespace {

/// Address and names of a line; empty: there are none.
std::vector<std::string> hosts_words(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(line) + ' ') {
    const bool is_blank = c == ' ' || c == '\t' || c == '\r';
    if (!is_blank) word += c;
    if (is_blank && !word.empty()) words.push_back(std::exchange(word, {}));
  }
  return words;
}

bool loops_back(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace

std::string hosts_with_own(const std::string& hosts, std::string_view own) {
  std::set<std::string> names;
  for (const std::string_view line : split(hosts, '\n')) {
    const std::vector<std::string> words = hosts_words(line);
    if (words.empty() || loops_back(words.front())) continue;
    names.insert(words.begin() + 1, words.end());
  }
  std::string text = hosts;
  for (const std::string_view line : split(own, '\n')) {
    const std::vector<std::string> words = hosts_words(line);
    if (words.empty()) continue;
    const bool names_a_node = std::any_of(words.begin() + 1, words.end(),
                                          [&](const auto& word) { return names.contains(word); });
    if (names_a_node && loops_back(words.front())) continue;
    text.append(line).push_back('\n');
  }
  return text;
}

}  // namespace mlenv::job
