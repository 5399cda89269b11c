#include "recipes/init/text_filters.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include <regex.h>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostPattern = 400;
constexpr std::size_t kMostGroups = 10;
constexpr std::size_t kMostFilteredBytes = std::size_t{4} << 20U;
constexpr std::size_t kLastLine = std::numeric_limits<std::size_t>::max();

/// A pattern of POSIX. Those that may take long to match are none: with counts, and with references
/// to groups.
class LinePattern {
 public:
  static std::optional<LinePattern> of(const std::string& text, bool extended, bool any_case) {
    if (text.size() > kMostPattern || text.find('{') != std::string::npos) return std::nullopt;
    for (std::size_t at = 0; at + 1 < text.size(); ++at) {
      if (text[at] != '\\') continue;
      if (is_digit(text[++at]) || text[at] == 'd') return std::nullopt;
    }
    LinePattern pattern;
    const int flags = (extended ? REG_EXTENDED : 0) | (any_case ? REG_ICASE : 0);
    pattern.compiled_->made = regcomp(&pattern.compiled_->regex, text.c_str(), flags) == 0;
    return pattern.compiled_->made ? std::optional(pattern) : std::nullopt;
  }

  using Groups = std::array<regmatch_t, kMostGroups>;
  bool finds(const std::string& line, std::size_t from, Groups& groups) const {
    return regexec(&compiled_->regex, line.c_str() + from, groups.size(), groups.data(),
                   from > 0 ? REG_NOTBOL : 0) == 0;
  }
  bool is_in(const std::string& line) const {
    Groups groups{};
    return finds(line, 0, groups);
  }

 private:
  struct Compiled {
    regex_t regex{};
    bool made = false;
    Compiled() = default;
    Compiled(const Compiled&) = delete;
    Compiled& operator=(const Compiled&) = delete;
    ~Compiled() {
      if (made) regfree(&regex);
    }
  };
  std::shared_ptr<Compiled> compiled_ = std::make_shared<Compiled>();
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string joined_text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// grep

struct GrepWords {
  std::vector<std::string> patterns{};
  std::vector<std::string> files{};
  bool inverted = false;
  bool any_case = false;
  bool extended = false;
  bool fixed = false;
};

/// `-v`, `-viE`; false: it does what is not known here.
bool grep_letters(std::string_view letters, GrepWords& grep) {
  for (const char c : letters) {
    if (c == 'v') {
      grep.inverted = true;
    } else if (c == 'i' || c == 'y') {
      grep.any_case = true;
    } else if (c == 'E' || c == 'P') {
      grep.extended = true;
    } else if (c == 'F') {
      grep.fixed = true;
    } else if (c != 'a' && c != 'h' && c != 's') {
      return false;
    }
  }
  return true;
}

bool grep_name(std::string_view name, GrepWords& grep) {
  if (name == "--invert-match") return grep_letters("v", grep);
  if (name == "--ignore-case") return grep_letters("i", grep);
  if (name == "--extended-regexp") return grep_letters("E", grep);
  if (name == "--fixed-strings") return grep_letters("F", grep);
  constexpr std::string_view kPattern = "--regexp=";
  if (name.starts_with(kPattern)) grep.patterns.emplace_back(name.substr(kPattern.size()));
  return name.starts_with(kPattern);
}

std::optional<GrepWords> grep_words(const std::vector<std::string>& words) {
  GrepWords grep;
  grep.extended = words.front() == "egrep";
  grep.fixed = words.front() == "fgrep";
  std::vector<std::string> plain;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || !word.starts_with('-')) {
      plain.push_back(word);
    } else if (word.starts_with("--")) {
      if (!grep_name(word, grep)) return std::nullopt;
    } else if (word.ends_with('e') && i + 1 < words.size()) {
      if (!grep_letters(std::string_view(word).substr(1, word.size() - 2), grep)) return {};
      grep.patterns.push_back(words[++i]);
    } else if (!grep_letters(std::string_view(word).substr(1), grep)) {
      return std::nullopt;
    }
  }
  if (grep.patterns.empty()) {
    if (plain.empty()) return std::nullopt;
    grep.patterns.push_back(plain.front());
    plain.erase(plain.begin());
  }
  grep.files = std::move(plain);
  return grep;
}

std::optional<std::string> grepped(const GrepWords& grep, std::string_view input) {
  std::vector<LinePattern> patterns;
  for (const std::string& one : grep.patterns) {
    if (grep.fixed) break;
    const auto pattern = LinePattern::of(one, grep.extended, grep.any_case);
    if (!pattern) return std::nullopt;
    patterns.push_back(*pattern);
  }
  const auto fits = [&](const std::string& line) {
    if (!grep.fixed) {
      return std::any_of(patterns.begin(), patterns.end(),
                         [&](const LinePattern& one) { return one.is_in(line); });
    }
    return std::any_of(grep.patterns.begin(), grep.patterns.end(), [&](const std::string& one) {
      return grep.any_case ? says(to_lower(line), to_lower(one)) : says(line, one);
    });
  };
  std::vector<std::string> lines = lines_of(input);
  std::erase_if(lines, [&](const std::string& line) { return fits(line) == grep.inverted; });
  return joined_text(lines);
}

// sed

struct SedEdit {
  std::optional<LinePattern> where{};
  std::size_t first = 0;  ///< lines, counted from 1; 0: all
  std::size_t last = 0;
  bool deletes = false;
  std::optional<LinePattern> what{};
  std::string with{};
  bool all = false;
};

/// Commands of sed's: `/x/d`, `2,3d`, `s/a/b/g`.
class SedScript {
 public:
  SedScript(std::string_view text, bool extended) : text_(text), extended_(extended) {}

  /// False: a command of it is not known here.
  bool read(std::vector<SedEdit>& edits) {
    while (true) {
      at_ = std::min(text_.find_first_not_of(" \t\n;", at_), text_.size());
      if (at_ == text_.size()) return true;
      SedEdit edit;
      if (!address(edit) || !command(edit)) return false;
      edits.push_back(std::move(edit));
    }
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  /// Up to the next `mark`, which `\` before it makes an ordinary character.
  std::optional<std::string> part(char mark) {
    std::string out;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == mark) {
        ++at_;
        return out;
      }
      const bool escape = text_[at_] == '\\' && at_ + 1 < text_.size();
      if (escape && text_[at_ + 1] != mark) out += '\\';
      if (escape) ++at_;
      out += text_[at_];
    }
    return std::nullopt;
  }

  std::size_t number() {
    if (next() == '$') {
      ++at_;
      return kLastLine;
    }
    std::size_t value = 0;
    for (; is_digit(next()) && value < kMostFilteredBytes; ++at_) {
      value = value * 10 + static_cast<std::size_t>(next() - '0');
    }
    return value;
  }

  bool address(SedEdit& edit) {
    if (next() == '/' || next() == '\\') {
      if (next() == '\\') ++at_;
      const char mark = next();
      ++at_;
      const auto pattern = part(mark);
      const bool any_case = next() == 'I';
      if (any_case) ++at_;
      if (pattern) edit.where = LinePattern::of(*pattern, extended_, any_case);
      return edit.where.has_value();
    }
    if (!is_digit(next()) && next() != '$') return true;
    edit.first = edit.last = number();
    if (next() != ',') return edit.first > 0;
    ++at_;
    edit.last = number();
    return edit.first > 0 && edit.last >= edit.first;
  }

  bool command(SedEdit& edit) {
    const char name = next();
    ++at_;
    edit.deletes = name == 'd';
    if (name == 's') return substitution(edit);
    return edit.deletes && ends();
  }
  bool ends() const { return at_ >= text_.size() || says(" \t\n;", std::string(1, next())); }

  bool substitution(SedEdit& edit) {
    const char mark = next();
    ++at_;
    const auto pattern = part(mark);
    const auto with = pattern ? part(mark) : std::nullopt;
    if (!with) return false;
    bool any_case = false;
    for (; !ends(); ++at_) {
      if (next() == 'g') {
        edit.all = true;
      } else if (next() == 'I' || next() == 'i') {
        any_case = true;
      } else {
        return false;
      }
    }
    edit.what = LinePattern::of(*pattern, extended_, any_case);
    edit.with = *with;
    return edit.what.has_value();
  }

  std::string_view text_;
  bool extended_;
  std::size_t at_ = 0;
};

/// `&`, `\1` and `\n` in what takes the place of a match.
std::string replacement(const std::string& with, const std::string& line, std::size_t from,
                        const LinePattern::Groups& groups) {
  const auto group = [&](std::size_t number) {
    const regmatch_t& one = groups.at(number);
    if (one.rm_so < 0) return std::string();
    return line.substr(from + static_cast<std::size_t>(one.rm_so),
                       static_cast<std::size_t>(one.rm_eo - one.rm_so));
  };
  std::string out;
  for (std::size_t at = 0; at < with.size(); ++at) {
    if (with[at] == '&') {
      out += group(0);
    } else if (with[at] != '\\' || at + 1 == with.size()) {
      out += with[at];
    } else if (is_digit(with[++at])) {
      out += group(static_cast<std::size_t>(with[at] - '0'));
    } else {
      out += with[at] == 'n' ? '\n' : with[at];
    }
  }
  return out;
}

std::string substituted(const SedEdit& edit, const std::string& line) {
  std::string out;
  std::size_t from = 0;
  LinePattern::Groups groups{};
  while (from <= line.size() && edit.what->finds(line, from, groups)) {
    const auto begin = static_cast<std::size_t>(groups[0].rm_so);
    const auto end = static_cast<std::size_t>(groups[0].rm_eo);
    out += line.substr(from, begin) + replacement(edit.with, line, from, groups);
    if (end == begin && from + end < line.size()) out += line[from + end];
    from += end == begin ? end + 1 : end;
    if (!edit.all || out.size() > kMostFilteredBytes) break;
  }
  return from < line.size() ? out + line.substr(from) : out;
}

struct SedWords {
  std::vector<SedEdit> edits{};
  std::vector<std::string> files{};
  bool in_place = false;
};

std::optional<SedWords> sed_words(const std::vector<std::string>& words) {
  SedWords sed;
  bool extended = false;
  std::vector<std::string> scripts;
  std::vector<std::string> plain;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    constexpr std::string_view kScript = "--expression=";
    if (word.starts_with("-i") || word.starts_with("--in-place")) {
      sed.in_place = true;
    } else if (word == "-E" || word == "-r" || word == "--regexp-extended") {
      extended = true;
    } else if (word == "-Ei" || word == "-ri") {
      extended = sed.in_place = true;
    } else if (word == "-e" && i + 1 < words.size()) {
      scripts.push_back(words[++i]);
    } else if (word.starts_with(kScript)) {
      scripts.push_back(word.substr(kScript.size()));
    } else if (word.starts_with('-')) {
      return std::nullopt;
    } else {
      plain.push_back(word);
    }
  }
  if (scripts.empty() && !plain.empty()) {
    scripts.push_back(plain.front());
    plain.erase(plain.begin());
  }
  for (const std::string& one : scripts) {
    if (!SedScript(one, extended).read(sed.edits)) return std::nullopt;
  }
  sed.files = std::move(plain);
  return sed;
}

std::string sed_output(const std::vector<SedEdit>& edits, std::string_view input) {
  const std::vector<std::string> lines = lines_of(input);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string line = lines[i];
    bool deleted = false;
    for (const SedEdit& edit : edits) {
      const std::size_t number = i + 1;
      const bool last = number == lines.size() && edit.last == kLastLine;
      const bool from = number >= edit.first || (edit.first == kLastLine && last);
      if (edit.first > 0 && (!from || number > edit.last)) continue;
      if (edit.where && !edit.where->is_in(line)) continue;
      if (edit.deletes) {
        deleted = true;
        break;
      }
      line = substituted(edit, line);
    }
    if (!deleted) out.push_back(std::move(line));
  }
  return joined_text(out);
}

// The others

/// `tail -n +2`, `head -n 5`
std::optional<std::string> ends_of(const std::vector<std::string>& words, std::string_view input) {
  std::string count;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "-n" && i + 1 < words.size()) count = words[++i];
    if (words[i].starts_with("-n") && words[i].size() > 2) count = words[i].substr(2);
  }
  const bool tail = words.front() == "tail";
  const bool from = tail && count.starts_with('+');
  if (from) count.erase(0, 1);
  if (count.empty() || count.size() > 6 || !all_digits(count)) return std::nullopt;
  const std::size_t number = std::stoul(count);
  std::vector<std::string> lines = lines_of(input);
  const std::size_t first = from                            ? (number == 0 ? 0 : number - 1)
                            : tail && lines.size() > number ? lines.size() - number
                                                            : 0;
  const std::size_t last = tail ? lines.size() : std::min(number, lines.size());
  if (first >= last) return "";
  return joined_text({lines.begin() + static_cast<std::ptrdiff_t>(first),
                      lines.begin() + static_cast<std::ptrdiff_t>(last)});
}

}  // namespace

std::optional<TextFilter> text_filter(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::string& program = words.front();
  if (program == "grep" || program == "egrep" || program == "fgrep") {
    const auto grep = grep_words(words);
    return grep ? std::optional(TextFilter{words, grep->files, false}) : std::nullopt;
  }
  if (program == "sed") {
    const auto sed = sed_words(words);
    return sed ? std::optional(TextFilter{words, sed->files, sed->in_place}) : std::nullopt;
  }
  constexpr std::array<std::string_view, 5> kOthers = {"cat", "sort", "uniq", "head", "tail"};
  if (!is_among(kOthers, program)) return std::nullopt;
  TextFilter filter{words, {}, false};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool count = words[i] == "-n" && (program == "head" || program == "tail");
    if (count) ++i;
    if (!count && !words[i].starts_with('-')) filter.files.push_back(words[i]);
  }
  return filter;
}

std::optional<std::string> filtered(const TextFilter& filter, std::string_view input) {
  if (input.size() > kMostFilteredBytes) return std::nullopt;
  const std::string& program = filter.words.front();
  if (program == "sed") {
    const auto sed = sed_words(filter.words);
    return sed ? std::optional(sed_output(sed->edits, input)) : std::nullopt;
  }
  if (program.ends_with("grep")) {
    const auto grep = grep_words(filter.words);
    return grep ? grepped(*grep, input) : std::nullopt;
  }
  if (program == "head" || program == "tail") return ends_of(filter.words, input);
  return std::string(input);  // in which order lines stand is nothing to a list
}

}  // namespace mlenv
