#include "recipes/resolve/debian_control.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

/// Cuts the first line off `rest`, without its line end.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

bool continues(std::string_view rest) {
  return !rest.empty() && (rest.front() == ' ' || rest.front() == '\t');
}

}  // namespace

void each_word(std::string_view text, const std::function<void(std::string_view)>& take) {
  std::size_t start = text.find_first_not_of(kBlank);
  while (start != std::string_view::npos) {
    const std::size_t end = text.find_first_of(kBlank, start);
    take(text.substr(start, end - start));
    start = text.find_first_not_of(kBlank, end);
  }
}

std::vector<std::string> word_list(std::string_view text) {
  std::vector<std::string> found;
  each_word(text, [&](std::string_view word) { found.emplace_back(word); });
  return found;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

void ControlStanza::each(
    const std::function<void(std::string_view name, std::string_view value)>& take) const {
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const std::size_t colon = line.find(':');
    const char* end = line.data() + line.size();
    while (continues(rest)) {
      const std::string_view more = take_line(rest);
      end = more.data() + more.size();
    }
    if (colon == std::string_view::npos || line.front() == '#') continue;
    const char* begin = line.data() + colon + 1;
    const std::string_view value{begin, static_cast<std::size_t>(end - begin)};
    take(trim(line.substr(0, colon)), trim(value));
  }
}

std::string_view ControlStanza::field(std::string_view name) const {
  std::string_view found;
  each([&](std::string_view other, std::string_view value) {
    if (found.data() == nullptr && equal_ignoring_case(name, other)) found = value;
  });
  return found;
}

void each_stanza(std::string_view text, const std::function<void(ControlStanza)>& take) {
  std::string_view rest = text;
  const char* begin = nullptr;
  const char* end = nullptr;
  const auto finish = [&] {
    if (begin != nullptr) take(ControlStanza{{begin, static_cast<std::size_t>(end - begin)}});
    begin = nullptr;
  };
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    if (trim(line).empty()) {
      finish();
      continue;
    }
    if (begin == nullptr) begin = line.data();
    end = line.data() + line.size();
  }
  finish();
}

}  // namespace mlenv
