#include "recipes/init/dockerfile.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "recipes/init/shell_values.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 18> kKeywords = {
    "FROM",    "RUN", "CMD",     "LABEL",      "MAINTAINER",  "EXPOSE",
    "ENV",     "ADD", "COPY",    "ENTRYPOINT", "VOLUME",      "USER",
    "WORKDIR", "ARG", "ONBUILD", "STOPSIGNAL", "HEALTHCHECK", "SHELL"};

std::string upper(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

/// Names of heredocs that an instruction opens: `<<EOF`, `<<-EOF`, `<<"EOF"`; `<<<` is none.
std::vector<std::string> heredoc_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = text.find("<<", at)) != std::string_view::npos;) {
    at += 2;
    if (at < text.size() && text[at] == '<') {
      at = std::min(text.find_first_not_of('<', at), text.size());
      continue;
    }
    if (at < text.size() && text[at] == '-') ++at;
    const bool quoted = at < text.size() && (text[at] == '"' || text[at] == '\'');
    if (quoted) ++at;
    const std::size_t begin = at;
    while (at < text.size() && (is_alphanumeric(text[at]) || text[at] == '_')) ++at;
    if (at > begin && !is_digit(text[begin])) names.emplace_back(text.substr(begin, at - begin));
  }
  return names;
}

class DockerfileReader {
 public:
  DockerfileReader(std::string_view text, const fs::path& shown_path)
      : mistakes_(shown_path, std::string(text)) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      lines_.push_back(line);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }

  std::vector<DockerInstruction> read() {
    directives();
    while (at_ < lines_.size()) {
      const std::string_view line = trim(lines_[at_]);
      if (line.empty() || line.starts_with('#')) {
        ++at_;
      } else {
        instruction();
      }
    }
    if (found_.empty() && mistakes_.empty()) mistakes_.add(1, 1, "there is no instruction in it");
    if (!mistakes_.empty()) throw mistakes_.error("source-invalid");
    return std::move(found_);
  }

 private:
  /// `# escape=X` stands above all else.
  void directives() {
    for (const std::string_view line : lines_) {
      const std::string_view text = trim(line);
      if (!text.starts_with('#') || text.find('=') == std::string_view::npos) return;
      const std::size_t equal = text.find('=');
      const std::string_view value = trim(text.substr(equal + 1));
      if (upper(trim(text.substr(1, equal - 1))) == "ESCAPE" && value.size() == 1) {
        escape_ = value.front();
      }
    }
  }

  /// The instruction's lines, joined; comments and blank lines between them are left out.
  std::string joined() {
    std::string text;
    bool goes_on = true;
    bool first = true;
    while (goes_on && at_ < lines_.size()) {
      std::string_view line = lines_[at_++];
      const std::string_view clean = trim(line);
      if (!first && (clean.empty() || clean.starts_with('#'))) continue;
      first = false;
      const std::size_t last = line.find_last_not_of(" \t");
      goes_on = last != std::string_view::npos && line[last] == escape_;
      if (goes_on) line = line.substr(0, last);
      text += line;
    }
    return std::string(trim(text));
  }

  void instruction() {
    DockerInstruction one;
    one.line = static_cast<int>(at_) + 1;
    const std::string_view raw = lines_[at_];
    const auto column = static_cast<int>(raw.find_first_not_of(" \t")) + 1;
    const std::string text = joined();
    const std::size_t blank = std::min(text.find_first_of(" \t"), text.size());
    one.keyword = upper(text.substr(0, blank));
    if (std::find(kKeywords.begin(), kKeywords.end(), one.keyword) == kKeywords.end()) {
      mistakes_.add(one.line, column,
                    fmt::format("`{}` is no instruction of a Dockerfile{}", text.substr(0, blank),
                                suggestion(one.keyword, kKeywords)));
      return;
    }
    std::string_view rest = trim(std::string_view(text).substr(blank));
    while (rest.starts_with("--")) {
      const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
      one.flags.emplace_back(rest.substr(0, end));
      rest = trim(rest.substr(end));
    }
    one.text = rest;
    if (one.keyword == "RUN" || one.keyword == "COPY" || one.keyword == "ADD") heredocs(one);
    found_.push_back(std::move(one));
  }

  void heredocs(DockerInstruction& one) {
    for (const std::string& name : heredoc_names(one.text)) {
      DockerHeredoc heredoc{name, "", static_cast<int>(at_) + 1};
      while (at_ < lines_.size() && trim(lines_[at_]) != name) {
        heredoc.text += lines_[at_++];
        heredoc.text += '\n';
      }
      if (at_ == lines_.size()) {
        mistakes_.add(one.line, 1,
                      fmt::format("there is no line `{}` that ends its heredoc", name));
        return;
      }
      ++at_;
      one.heredocs.push_back(std::move(heredoc));
    }
  }

  Mistakes mistakes_;
  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
  char escape_ = '\\';
  std::vector<DockerInstruction> found_;
};

/// A `${…}` from after its brace; what it stands for, or nullopt.
std::optional<std::string> braced(std::string_view inner, const DockerVariables& known) {
  const std::size_t sign = inner.find_first_of("#%/:-+");
  if (sign != std::string_view::npos &&
      std::string_view("#%/").find(inner[sign]) != std::string_view::npos) {
    return shell_parameter(inner, known);
  }
  const std::size_t end = std::min(inner.find_first_of(":-+"), inner.size());
  const auto found = known.find(std::string(inner.substr(0, end)));
  const bool set = found != known.end() && !found->second.empty();
  std::string_view rest = inner.substr(end);
  if (rest.starts_with(':')) rest.remove_prefix(1);
  if (rest.empty()) {
    return found == known.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  std::string_view word = rest.substr(1);
  // `${X:-""}`
  if (word.size() > 1 && word.front() == word.back() &&
      (word.front() == '"' || word.front() == '\'')) {
    word = word.substr(1, word.size() - 2);
  }
  if (word.find('$') != std::string::npos) return std::nullopt;
  if (rest.front() == '-') return set ? found->second : std::string(word);
  if (rest.front() == '+') return set ? std::string(word) : "";
  return std::nullopt;
}

/// A line that names the one before four times, and so on, would soon fill all memory.
constexpr std::size_t kMostExpanded = size_limit::kMiB;

void check_expanded(std::size_t size) {
  if (size <= kMostExpanded) return;
  throw failure("too-large", "variables make a text of more than {} bytes of a Dockerfile's line",
                kMostExpanded)
      .hint("a variable that names others over and over grows with each line: write what it holds");
}

}  // namespace

std::vector<DockerInstruction> read_dockerfile(std::string_view text, const fs::path& shown_path) {
  return DockerfileReader(text, shown_path).read();
}

std::optional<std::vector<std::string>> exec_form(std::string_view text) {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (!value.is_array()) return std::nullopt;
  std::vector<std::string> words;
  for (const nlohmann::json& item : value) {
    if (!item.is_string()) return std::nullopt;
    words.push_back(item.get<std::string>());
  }
  return words;
}

std::size_t variable_end(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  if (end < text.size() && text[end] == '{') {
    const std::size_t brace = text.find('}', end);
    return brace == std::string_view::npos ? text.size() : brace + 1;
  }
  while (end < text.size() && (is_alphanumeric(text[end]) || text[end] == '_')) {
    ++end;
  }
  return end;
}

std::string expand_variables(std::string_view text, const DockerVariables& known, bool& complete) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] == '$') {
      out += '$';
      at += 2;
      continue;
    }
    const std::size_t end = text[at] == '$' ? variable_end(text, at) : at + 1;
    const std::string_view part = text.substr(at, end - at);
    at = end;
    if (part.size() == 1) {
      out += part;
      continue;
    }
    std::optional<std::string> value;
    if (part[1] == '{') {
      if (part.back() == '}') value = braced(part.substr(2, part.size() - 3), known);
    } else if (const auto found = known.find(std::string(part.substr(1))); found != known.end()) {
      value = found->second;
    }
    if (!value) complete = false;
    out += value ? *value : std::string(part);
    if (value) check_expanded(out.size());
  }
  return out;
}

namespace {

/// With `one`, blanks end no word.
std::vector<std::string> words_between(std::string_view text, const DockerVariables& known,
                                       bool& complete, bool one) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  std::size_t expanded = 0;  // of all words together
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (quote == 0 && blank && !one) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && at + 1 < text.size()) {
      words.back() += text[++at];
    } else if (c == '$' && quote != '\'') {
      const std::size_t end = variable_end(text, at);
      const std::string value = expand_variables(text.substr(at, end - at), known, complete);
      check_expanded(expanded += value.size());
      words.back() += value;
      at = end - 1;
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

std::vector<std::string> docker_words(std::string_view text, const DockerVariables& known,
                                      bool& complete) {
  return words_between(text, known, complete, false);
}

std::string docker_value(std::string_view text, const DockerVariables& known, bool& complete) {
  const std::vector<std::string> words = words_between(text, known, complete, true);
  return words.empty() ? std::string() : words.front();
}

}  // namespace mlenv
