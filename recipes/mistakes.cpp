#include "recipes/mistakes.hpp"

#include <algorithm>
#include <tuple>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kShownMistakes = 20;
constexpr std::size_t kShownWidth = 120;

std::string_view line_of(std::string_view source, int line) {
  for (int i = 1; i < line; ++i) {
    const std::size_t end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  source = source.substr(0, source.find('\n'));
  if (source.ends_with('\r')) source.remove_suffix(1);
  return source;
}

/// The line and a caret below it. Nothing where the line is blank, too long or no clean text.
std::string excerpt(std::string_view line, int column) {
  const bool printable = utf8_fault(line) == std::string_view::npos && !has_control(line, "\t");
  if (trim(line).empty() || !printable || line.size() > kShownWidth) return {};
  std::string text = "\n    ";
  text += line;
  text += "\n    ";
  int at = 1;
  for (const char c : line) {
    if ((static_cast<unsigned>(c) & 0xC0U) == 0x80) continue;  // inside a character
    if (at++ >= column) break;
    text += c == '\t' ? '\t' : ' ';  // a tab keeps the caret below its character
  }
  return text + '^';
}

}  // namespace

void Mistakes::add(int line, int column, std::string message) {
  found_.push_back({line, column, std::move(message)});
}

std::string Mistakes::shown(const Mistake& mistake) const {
  return fmt::format("{}:{}:{}: {}{}", path_.string(), mistake.line, mistake.column,
                     mistake.message, excerpt(line_of(source_, mistake.line), mistake.column));
}

Error Mistakes::error(std::string code) const {
  std::vector<Mistake> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Mistake& a, const Mistake& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kShownMistakes); ++i) {
    if (i > 0) text += '\n';
    text += shown(sorted[i]);
  }
  if (sorted.size() > kShownMistakes) {
    text += fmt::format("\nand {} more mistakes", sorted.size() - kShownMistakes);
  }
  return {Kind::usage, std::move(code), std::move(text)};
}

}  // namespace mlenv
