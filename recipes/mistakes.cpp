#include "recipes/mistakes.hpp"

#include <algorithm>
#include <tuple>

#include "base/printable.hpp"
#include "recipes/logins.hpp"
#include "recipes/project_path.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kShownMistakes = 20;
constexpr std::size_t kShownWidth = 120;

constexpr std::string_view kMargin = "    ";

std::vector<std::string_view> source_lines(std::string_view source) {
  std::vector<std::string_view> lines;
  for (;;) {
    const std::size_t end = source.find('\n');
    std::string_view line = source.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) return lines;
    source.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> characters_of(std::string_view line) {
  std::vector<std::string_view> found;
  while (!line.empty()) {
    std::size_t length = 1;
    while (length < line.size() && (static_cast<unsigned>(line[length]) & 0xC0U) == 0x80) ++length;
    found.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
  return found;
}

/// Where the character at `at` is in the line without its logins; of one in a login, where that
/// was.
std::size_t place_without_logins(std::string_view line, std::size_t at) {
  std::size_t gone = 0;
  std::size_t come = 0;
  for (const TextSpan& login : find_logins(line)) {
    const std::size_t first = utf8_length(line.substr(0, login.start));
    const std::size_t count = utf8_length(line.substr(login.start, login.size));
    if (at <= first) break;
    if (at < first + count) return first - gone + come;
    gone += count;
    come += kHiddenLogin.size();
  }
  return at - gone + come;
}

/// The line and a caret below it. Nothing where the line is blank or no clean text.
std::string excerpt(std::string_view line, int column) {
  const bool is_clean = utf8_fault(line) == std::string_view::npos && !has_control(line, "\t");
  if (trim(line).empty() || !is_clean) return {};
  const std::string public_line = without_logins(line);
  const std::vector<std::string_view> all = characters_of(public_line);
  const std::size_t at = std::min(
      place_without_logins(line, static_cast<std::size_t>(std::max(column, 1)) - 1), all.size());
  std::size_t from = 0;
  std::size_t to = all.size();
  if (all.size() > kShownWidth) {
    from = std::min(at - std::min(at, kShownWidth / 2), all.size() - kShownWidth);
    to = from + kShownWidth;
  }
  std::string text = "\n";
  std::string below = "\n";
  text += kMargin;
  below += kMargin;
  if (from > 0) {
    text += "…";
    below += ' ';
  }
  for (std::size_t i = from; i < to; ++i) {
    // U+0085 and U+2028 end a line for some terminals, U+202E turns it round.
    const std::string shown = all[i] == "\t" ? "\t" : printable(all[i]);
    text += shown;
    if (i >= at) continue;
    if (shown == "\t") {
      below += '\t';  // keeps the caret below its character
    } else {
      below.append(shown == all[i] ? 1 : shown.size(), ' ');
    }
  }
  if (to < all.size()) text += "…";
  return text + below + '^';
}

/// What a message quotes may be as long as a whole file.
std::string with_short_quotes(std::string_view message) {
  constexpr std::size_t kMost = 400;
  std::string text;
  while (!message.empty()) {
    const std::size_t quote = std::min(message.find('`'), message.size());
    std::size_t shown = quote;
    if (shown > kMost) {
      shown = kMost;
      while ((static_cast<unsigned>(message[shown]) & 0xC0U) == 0x80) --shown;
    }
    text += message.substr(0, shown);
    if (shown < quote) text += "…";
    if (quote < message.size()) text += '`';
    message.remove_prefix(std::min(quote + 1, message.size()));
  }
  return text;
}

/// Words of the file that a message quotes are left out, too.
std::string without_quoted(std::string_view message) {
  std::string text;
  bool inside = false;
  for (const char c : message) {
    if (c == '`') {
      if (!inside) text += "`…`";
      inside = !inside;
    } else if (!inside) {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string shown_mistake(const fs::path& shown_path, std::string_view source, int line, int column,
                          std::string_view message) {
  const std::vector<std::string_view> lines = source_lines(source);
  auto row = static_cast<std::size_t>(std::max(line, 1)) - 1;
  std::size_t last = lines.size();
  while (last > 0 && trim(lines[last - 1]).empty()) --last;
  if (last > 0 && row >= last) {
    row = last - 1;
    line = static_cast<int>(last);
    column = static_cast<int>(utf8_length(lines[row])) + 1;
  }
  // A cloned repository's link may lead to any file of this machine: its lines and words are not
  // shown.
  const bool quoted = !leads_out(shown_path, shown_path.parent_path());
  return fmt::format("{}:{}:{}: {}{}", shown_path.string(), line, column,
                     quoted ? with_short_quotes(without_logins(message)) : without_quoted(message),
                     quoted && row < lines.size() ? excerpt(lines[row], column) : "");
}

void Mistakes::add(int line, int column, std::string message) {
  found_.push_back({line, column, std::move(message)});
}

Error Mistakes::error(std::string code) const {
  std::vector<Mistake> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Mistake& a, const Mistake& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kShownMistakes); ++i) {
    if (i > 0) text += '\n';
    const Mistake& one = sorted[i];
    text += shown_mistake(path_, source_, one.line, one.column, one.message);
  }
  if (sorted.size() > kShownMistakes) {
    text += "\nand " + counted(sorted.size() - kShownMistakes, "more mistake");
  }
  return {Kind::usage, std::move(code), std::move(text)};
}

}  // namespace mlenv
