#include "runner/record/git_config.hpp"

#include <fmt/core.h>

#include "base/files_beneath.hpp"
#include "base/text.hpp"
#include "runner/record/git_folders.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kLongestConfig = std::uint64_t{4} << 20U;

class ConfigReader {
 public:
  ConfigReader(std::string_view text, const fs::path& shown) : rest_(text), shown_(shown) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }

  GitConfig read() {
    GitConfig config;
    while (skip_blanks()) {
      if (rest_.front() == '[') {
        section_ = section();
        continue;
      }
      std::string key = section_ + name();
      config.values.emplace_back(std::move(key), value());
    }
    return config;
  }

 private:
  /// Blank lines and comments too. False: that was all.
  bool skip_blanks() {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '#' || c == ';') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (is_blank(c) || c == '\n') {
        take();
      } else {
        return true;
      }
    }
    return false;
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  char take() {
    if (rest_.empty()) throw bad();
    const char c = rest_.front();
    rest_.remove_prefix(1);
    line_ += c == '\n' ? 1 : 0;
    return c;
  }

  /// `[core]` is `core.`, `[branch "Main"]` is `branch.Main.`.
  std::string section() {
    std::string text;
    take();
    for (char c = take(); c != ']'; c = take()) {
      if (is_blank(c)) return text + '.' + subsection() + '.';
      if (!is_alphanumeric(c) && c != '-' && c != '.') throw bad();
      text += to_lower(c);
    }
    return text + '.';
  }
  std::string subsection() {
    std::string text;
    char c = take();
    while (is_blank(c)) c = take();
    if (c != '"') throw bad();
    for (c = take(); c != '"'; c = take()) {
      if (c == '\\') c = take();
      if (c == '\n') throw bad();
      text += c;
    }
    if (take() != ']') throw bad();
    return text;
  }

  std::string name() {
    std::string text;
    if (section_.empty() || !is_letter(rest_.front())) throw bad();
    while (!rest_.empty() && (is_alphanumeric(rest_.front()) || rest_.front() == '-')) {
      text += to_lower(take());
    }
    return text;
  }

  std::string value() {
    pass_blanks();
    const bool alone =
        rest_.empty() || rest_.front() == '\n' || rest_.front() == '#' || rest_.front() == ';';
    if (alone) return "true";
    if (take() != '=') throw bad();
    pass_blanks();
    return value_text();
  }

  void pass_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) take();
  }

  std::string value_text() {
    std::string text;
    std::size_t kept = 0;  // of blanks at the end only those in quotes stay
    for (bool quoted = false;;) {
      if (rest_.empty() || rest_.front() == '\n') {
        if (quoted) throw bad();
        break;
      }
      const char c = take();
      if (!quoted && (c == '#' || c == ';')) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
        break;
      }
      if (c == '"') {
        quoted = !quoted;
        kept = text.size();
        continue;
      }
      if (c == '\\') {
        append_escaped(text);
        kept = text.size();
        continue;
      }
      text += c;
      if (quoted || !is_blank(c)) kept = text.size();
    }
    text.resize(kept);
    return text;
  }
  void append_escaped(std::string& text) {
    char c = take();
    if (c == '\r' && !rest_.empty() && rest_.front() == '\n') c = take();
    switch (c) {
      case '\n':
        return;  // the line goes on
      case 't':
        text += '\t';
        return;
      case 'n':
        text += '\n';
        return;
      case 'b':
        text += '\b';
        return;
      case '"':
      case '\\':
        text += c;
        return;
      default:
        throw bad();
    }
  }

  NotKnown bad() const {
    return NotKnown(fmt::format("`{}`, line {}, is no setting of git's", shown_.string(), line_));
  }

  std::string_view rest_;
  const fs::path& shown_;
  std::string section_;
  int line_ = 1;
};

}  // namespace

std::optional<std::string> GitConfig::last(std::string_view key) const {
  for (auto at = values.rbegin(); at != values.rend(); ++at) {
    if (at->first == key) return at->second;
  }
  return std::nullopt;
}

GitConfig parse_git_config(std::string_view text, const fs::path& shown) {
  return ConfigReader{text, shown}.read();
}

GitConfig read_git_config(const fs::path& folder, const std::string& name) {
  const std::optional<std::string> text =
      read_file_beneath(open_folder(folder).get(), name, kLongestConfig);
  return text ? parse_git_config(*text, folder / name) : GitConfig{};
}

}  // namespace mlenv
