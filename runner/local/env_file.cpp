#include "runner/local/env_file.hpp"

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// What is wrong with it; empty: nothing.
std::string mistake_in(std::string_view line) {
  if (line.find('\0') != std::string_view::npos) return "there is a NUL byte in it";
  if (utf8_fault(line) != std::string_view::npos) return "it is not UTF-8 text";
  const std::string_view name = line.substr(0, line.find('='));
  if (name.empty()) return "there is no name before the `=`";
  if (name.find_first_of(" \t") == std::string_view::npos) return {};
  if (name.starts_with("export ")) return "no `export` here: write `NAME=VALUE`";
  return fmt::format("there is a blank in the name `{}`", printable(name));
}

std::string_view without_indent(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  return start == std::string_view::npos ? std::string_view{} : line.substr(start);
}

}  // namespace

std::vector<std::string> parse_env_file(std::string_view text, std::string_view shown) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> variables;
  std::string mistakes;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_indent(line);
    if (line.empty() || line.front() == '#') continue;
    const std::string mistake = mistake_in(line);
    if (mistake.empty()) {
      variables.emplace_back(line);
    } else {
      mistakes += fmt::format("{}{}:{}: {}", mistakes.empty() ? "" : "\n", shown, number, mistake);
    }
  }
  if (!mistakes.empty()) throw usage_error("bad-env-file", "{}", mistakes);
  return variables;
}

}  // namespace mlenv
