#include "recipes/init/shell_values.hpp"

#include <algorithm>
#include <array>
#include <regex>

#include <fnmatch.h>

#include "recipes/init/shell_words.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

bool matches(const std::string& pattern, std::string_view text) {
  return fnmatch(pattern.c_str(), std::string(text).c_str(), 0) == 0;
}

/// `${X#pattern}` and `${X%pattern}`; with the sign twice the longest match.
std::string cut_off(std::string_view value, std::string_view mark, const std::string& pattern) {
  const bool front = mark.front() == '#';
  const bool longest = mark.size() == 2;
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const std::size_t length = longest ? value.size() - i : i;
    const std::string_view part =
        front ? value.substr(0, length) : value.substr(value.size() - length);
    if (!matches(pattern, part)) continue;
    return std::string(front ? value.substr(length) : value.substr(0, value.size() - length));
  }
  return std::string(value);
}

/// `${X/a/b}` and `${X//a/b}`, of texts.
std::string replaced(std::string value, std::string_view from, std::string_view to, bool all) {
  if (from.empty()) return value;
  for (std::size_t at = value.find(from); at != std::string::npos;
       at = value.find(from, at + to.size())) {
    value.replace(at, from.size(), to);
    if (!all) break;
  }
  return value;
}

std::string without_quotes(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '"' && c != '\'' && c != '\\') out += c;
  }
  return out;
}

struct CutWords {
  char mark = '\t';  ///< 0: by characters
  std::string fields{};
};

/// Of `cut -d. -f1,2`; nothing where there is more to it.
std::optional<CutWords> cut_words(const std::vector<std::string>& words) {
  CutWords asked;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string value = words[i].size() > 2 ? words[i].substr(2) : "";
    const std::string name = words[i].substr(0, 2);
    if (value.empty() && i + 1 < words.size()) value = words[++i];
    if (name == "-d" && value.size() == 1) {
      asked.mark = value.front();
    } else if (name == "-f" || name == "-c") {
      asked.fields = value;
      if (name == "-c") asked.mark = 0;
    } else {
      return std::nullopt;
    }
  }
  return asked;
}

/// `2`, `2-`, `-3`: from and to, counted from one; 0 where it is no number.
std::pair<std::size_t, std::size_t> cut_range(std::string_view range, std::size_t last) {
  const std::size_t dash = range.find('-');
  const auto number = [](std::string_view text, std::size_t other) -> std::size_t {
    if (text.empty()) return other;
    return all_digits(text) && text.size() < 6 ? std::stoul(std::string(text)) : 0;
  };
  const std::string_view end = dash == std::string_view::npos ? range : range.substr(dash + 1);
  return {number(range.substr(0, dash), 1), number(end, last)};
}

/// `cut -d. -f1,2`
std::optional<std::string> cut_fields(const std::vector<std::string>& words, std::string_view in) {
  const std::optional<CutWords> asked = cut_words(words);
  if (!asked) return std::nullopt;
  std::vector<std::string> parts;
  if (asked->mark == 0) {
    for (const char c : in) parts.emplace_back(1, c);
  } else {
    for (const std::string_view part : split(in, asked->mark)) parts.emplace_back(part);
  }
  std::vector<std::string> kept;
  for (const std::string_view range : split(asked->fields, ',')) {
    const auto [begin, end] = cut_range(range, parts.size());
    if (begin == 0) return std::nullopt;
    for (std::size_t i = begin; i <= std::min(end, parts.size()); ++i) kept.push_back(parts[i - 1]);
  }
  return join(kept, asked->mark == 0 ? "" : std::string(1, asked->mark));
}

/// `tr -d .`, `tr A-Z a-z`
std::optional<std::string> translated(const std::vector<std::string>& words, std::string_view in) {
  std::string out(in);
  if (words.size() == 3 && words[1] == "-d" &&
      words[2].find_first_of("[\\-") == std::string::npos) {
    std::erase_if(out, [&](char c) { return words[2].find(c) != std::string::npos; });
    return out;
  }
  if (words.size() != 3) return std::nullopt;
  const bool lowers = words[1] == "A-Z" || words[1] == "[:upper:]" || words[1] == "[A-Z]";
  if (lowers) return to_lower(out);
  if (words[1].size() != 1 || words[2].size() != 1) return std::nullopt;
  std::replace(out.begin(), out.end(), words[1].front(), words[2].front());
  return out;
}

/// `sed 's/a/b/g'`, `sed -E …`
std::optional<std::string> edited(const std::vector<std::string>& words, const std::string& in) {
  auto grammar = std::regex::basic;
  std::string script;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "-E" || words[i] == "-r") {
      grammar = std::regex::extended;
    } else if (words[i] != "-e" && script.empty()) {
      script = words[i];
    } else if (words[i] != "-e") {
      return std::nullopt;
    }
  }
  constexpr std::size_t kMostScript = 60;
  if (script.size() < 4 || script.size() > kMostScript || script[0] != 's' || in.size() > 200) {
    return std::nullopt;
  }
  const std::vector<std::string_view> parts = split(std::string_view(script).substr(2), script[1]);
  if (parts.size() != 3 || parts[1].find_first_of("&\\$") != std::string_view::npos) {
    return std::nullopt;
  }
  if (!parts[2].empty() && parts[2] != "g") return std::nullopt;
  // What repeats what repeats takes for ever.
  const auto repeats = std::count_if(parts[0].begin(), parts[0].end(),
                                     [](char c) { return c == '*' || c == '+' || c == '{'; });
  if (repeats > 2 || parts[0].find('(') != std::string_view::npos) return std::nullopt;
  try {
    const std::regex pattern{std::string(parts[0]), grammar};
    const auto flags = parts[2] == "g" ? std::regex_constants::format_default
                                       : std::regex_constants::format_first_only;
    return std::regex_replace(in, pattern, std::string(parts[1]), flags);
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

std::optional<std::string> listed_names(const std::vector<std::string>& words,
                                        const FindPaths& paths) {
  std::string out;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with('-') || !paths) return std::nullopt;
    for (const std::string& one : paths(words[i])) out += (out.empty() ? "" : " ") + one;
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

std::optional<std::string> output_of(const std::vector<std::string>& words, const std::string& in,
                                     const FindPaths& paths) {
  const std::string& program = words.front();
  if (program == "echo") {
    const bool option = words.size() > 1 && (words[1] == "-n" || words[1] == "-e");
    return join({words.begin() + (option ? 2 : 1), words.end()}, " ");
  }
  if (program == "printf" && words.size() == 2 &&
      words[1].find_first_of("%\\") == std::string::npos)
    return words[1];
  if (program == "printf" && words.size() == 3 && words[1].starts_with("%s")) return words[2];
  if (program == "cut") return cut_fields(words, in);
  if (program == "tr") return translated(words, in);
  if (program == "sed") return edited(words, in);
  if (program == "ls") return listed_names(words, paths);
  if (program == "uname") return words.size() > 1 && words[1] == "-s" ? "Linux" : "x86_64";
  if (program == "arch") return "x86_64";
  if (program == "dpkg" && words.size() == 2 && words[1] == "--print-architecture") return "amd64";
  if (words.size() != 2) return std::nullopt;
  if (program == "dirname") {
    const std::string parent = fs::path(words[1]).parent_path().string();
    return parent.empty() ? "." : parent;
  }
  if (program == "basename") return fs::path(words[1]).filename().string();
  return std::nullopt;
}

std::optional<bool> two(const std::string& sign, const std::string& word, const IsFile& is_file) {
  if (sign == "!") return word.empty();
  if (sign == "-n") return !word.empty();
  if (sign == "-z") return word.empty();
  if (sign == "-f" || sign == "-e") return is_file(word);
  return std::nullopt;
}

std::optional<bool> three(const std::string& left, const std::string& sign,
                          const std::string& right, bool double_brackets) {
  if (sign == "=" || sign == "==" || sign == "!=") {
    const bool same = double_brackets ? matches(right, left) : left == right;
    return same == (sign != "!=");
  }
  constexpr std::array<std::string_view, 6> kOrders = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
  const auto* order = std::find(kOrders.begin(), kOrders.end(), sign);
  if (order == kOrders.end() || !all_digits(left) || !all_digits(right) || left.size() > 9 ||
      right.size() > 9) {
    return std::nullopt;
  }
  const auto a = std::stol(left);
  const auto b = std::stol(right);
  const std::array<bool, 6> answers = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return answers.at(static_cast<std::size_t>(order - kOrders.begin()));
}

}  // namespace

std::optional<std::string> shell_parameter(std::string_view inner, const DockerVariables& known) {
  if (inner.starts_with('#')) {
    const auto found = known.find(std::string(inner.substr(1)));
    if (found == known.end()) return std::nullopt;
    return std::to_string(found->second.size());
  }
  const std::size_t end = std::min(inner.find_first_of(":-+#%/"), inner.size());
  const auto found = known.find(std::string(inner.substr(0, end)));
  const std::string_view rest = inner.substr(end);
  if (found == known.end() || rest.empty() || rest.find('$') != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string& value = found->second;
  if (rest.front() == '/') {
    const bool all = rest.starts_with("//");
    const std::string_view both = rest.substr(all ? 2 : 1);
    const std::size_t slash = both.find('/');
    const std::string from = without_quotes(both.substr(0, slash));
    if (from.find_first_of("*?[") != std::string::npos) return std::nullopt;
    const std::string to =
        slash == std::string_view::npos ? "" : without_quotes(both.substr(slash + 1));
    return replaced(value, from, to, all);
  }
  if (rest.front() == '#' || rest.front() == '%') {
    const std::size_t length = rest.size() > 1 && rest[1] == rest[0] ? 2 : 1;
    return cut_off(value, rest.substr(0, length), without_quotes(rest.substr(length)));
  }
  return std::nullopt;
}

std::optional<std::string> shell_output(std::string_view command, const DockerVariables& known,
                                        const FindPaths& paths) {
  std::string in;
  const std::string text = with_shell_outputs(command, known, paths);
  for (const ShellCommand& one : shell_commands(text, known)) {
    const bool usable = one.simple && !one.control && one.group.empty() && one.input.empty();
    if (!usable || one.words.empty()) return std::nullopt;
    std::optional<std::string> out = output_of(one.words, in, paths);
    if (!out) return std::nullopt;
    in = *std::move(out);
  }
  return std::string(trim(in));
}

std::string with_shell_outputs(std::string_view text, const DockerVariables& known,
                               const FindPaths& paths) {
  std::string out;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && at + 1 < text.size()) {
      out += c;
      out += text[++at];
      continue;
    }
    if (c == '"' && quote == 0) {
      quote = '"';
    } else if (c == '\'' && quote == 0) {
      quote = '\'';
    } else if (c == quote) {
      quote = 0;
    }
    const bool begins = quote != '\'' && text.substr(at).starts_with("$(");
    const std::size_t end = begins ? closing_parenthesis(text, at + 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += c;
      continue;
    }
    const std::string_view whole = text.substr(at, end + 1 - at);
    const bool nested = whole.size() > 400;
    const auto value =
        nested ? std::nullopt : shell_output(whole.substr(2, whole.size() - 3), known, paths);
    const bool plain = value && value->find_first_of("\"'\\$`;&|<>()") == std::string::npos;
    out += plain ? *value : std::string(whole);
    at = end;
  }
  return out;
}

namespace {

/// What stands between `[` and `]`, or behind `test`; nothing of another program.
std::optional<std::vector<std::string>> words_of_test(std::vector<std::string> words) {
  const std::string program = words.front();
  if (program == "[" || program == "[[") {
    if (words.back() != (program == "[" ? "]" : "]]")) return std::nullopt;
    words.pop_back();
  } else if (program != "test" && program != "/usr/bin/test") {
    return std::nullopt;
  }
  words.erase(words.begin());
  constexpr std::array<std::string_view, 5> kJoining = {"-a", "-o", "&&", "||", "=~"};
  const bool joins = std::any_of(words.begin(), words.end(),
                                 [&](const std::string& word) { return is_among(kJoining, word); });
  return joins ? std::nullopt : std::optional(std::move(words));
}

}  // namespace

std::optional<bool> shell_test(std::vector<std::string> words, const IsFile& is_file) {
  if (words.empty()) return std::nullopt;
  if (words.size() == 1 && (words.front() == "true" || words.front() == ":")) return true;
  if (words.size() == 1 && words.front() == "false") return false;
  const bool twice = words.front() == "[[";
  std::optional<std::vector<std::string>> asked = words_of_test(std::move(words));
  if (!asked) return std::nullopt;
  const bool inverted = asked->size() > 2 && asked->front() == "!";
  if (inverted) asked->erase(asked->begin());
  const std::vector<std::string>& of = *asked;
  std::optional<bool> answer;
  if (of.empty()) answer = false;
  if (of.size() == 1) answer = !of[0].empty();
  if (of.size() == 2) answer = two(of[0], of[1], is_file);
  if (of.size() == 3) answer = three(of[0], of[1], of[2], twice);
  if (answer && inverted) answer = !*answer;
  return answer;
}

}  // namespace mlenv
