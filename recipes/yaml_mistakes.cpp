#include "recipes/yaml_mistakes.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::string_view from_column(std::string_view line, int column) {
  return line.substr(std::min(line.size(), static_cast<std::size_t>(std::max(column, 1)) - 1));
}

int first_column(std::string_view line) {
  return static_cast<int>(std::min(line.find_first_not_of(" \t"), line.size())) + 1;
}

/// Of `name:value`, which is a text as it stands; 0 where that is no key's mistake.
std::size_t key_length(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.substr(colon).starts_with("://")) return 0;
  return text.substr(0, colon).find_first_of(" \t") == std::string_view::npos ? colon : 0;
}

}  // namespace

YamlText::YamlText(std::string_view text) : text_(text), starts_{0} {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    starts_.push_back(at + 1);
}

std::string_view YamlText::line(int number) const {
  const auto row = static_cast<std::size_t>(number - 1);
  if (number < 1 || row >= starts_.size()) return {};
  // Asked for at each value: a search for the end would take lines of many values times their
  // length.
  const std::size_t end = row + 1 < starts_.size() ? starts_[row + 1] - 1 : text_.size();
  std::string_view found = text_.substr(starts_[row], end - starts_[row]);
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

std::optional<YamlMistake> YamlText::tab(int number) const {
  const std::string_view whole = line(number);
  const std::size_t at = whole.find('\t');
  if (at == std::string_view::npos || static_cast<int>(at) + 1 >= first_column(whole)) {
    return std::nullopt;
  }
  return YamlMistake{number, static_cast<int>(at) + 1, "a tab is no indentation: use spaces"};
}

std::optional<YamlMistake> YamlText::continued(int number, int column, std::string_view value,
                                               bool in_brackets) const {
  if (from_column(line(number), column).starts_with(value)) return std::nullopt;
  int next = number + 1;
  while (next < static_cast<int>(starts_.size()) && trim(line(next)).empty()) ++next;
  if (auto found = tab(next)) return found;
  const std::size_t key = key_length(from_column(line(number), column));
  if (key > 0 && !in_brackets && first_column(line(next)) <= first_column(line(number))) {
    return YamlMistake{number, column + static_cast<int>(key), "a blank is missing after this `:`"};
  }
  const std::string_view rest = trim(line(next));
  std::string message =
      "this line goes on with the text above it: check its indentation, or put quotes round a text "
      "of several lines";
  if (in_brackets) {
    message = "a `,` is missing before this line, or quotes round a text of several lines";
  } else if (rest.starts_with("- ")) {
    message = fmt::format("`{}` is indented deeper than the items above it", rest);
  } else if (says(rest, ":")) {
    message = "this line is indented deeper than the line above it, which has a value already";
  }
  return YamlMistake{next, first_column(line(next)), std::move(message)};
}

std::optional<YamlMistake> YamlText::unclosed_quote(int number, int column) const {
  const std::string_view whole = line(number);
  const std::string_view start = from_column(whole, column);
  if (start.empty() || (start.front() != '\'' && start.front() != '"')) return std::nullopt;
  const char quote = start.front();
  std::string_view rest = text_.substr(static_cast<std::size_t>(start.data() - text_.data()) + 1);
  for (std::size_t at = 0; at < rest.size(); ++at) {
    if (quote == '"' && rest[at] == '\\') {
      ++at;
    } else if (rest[at] == quote) {
      if (quote == '"' || !rest.substr(at + 1).starts_with('\'')) return std::nullopt;
      ++at;  // `''` is a quote within the text
    }
  }
  return YamlMistake{number, column, fmt::format("this `{}` has no closing one", quote)};
}

/// A `:` where no key can end.
YamlMistake YamlText::stray_colon(int number, int column) const {
  const std::string_view whole = line(number);
  const std::string_view before = whole.substr(0, whole.size() - from_column(whole, column).size());
  int above = number - 1;
  while (above > 0 && trim(line(above)).empty()) --above;
  if (above == 0 || says(before, ":")) {
    return {number, column, "a `:` is not allowed here: quote the value if the `:` belongs to it"};
  }
  if (!says(line(above), ":")) {
    return {above, first_column(line(above)), "this line is no `key: value`: a `:` is missing"};
  }
  return {number, first_column(whole),
          "this line does not fit the lines above it: check their indentation, and that each is "
          "`key: value`"};
}

YamlMistake YamlText::explained(int number, int column, const std::string& said) const {
  if (auto found = tab(number)) return *std::move(found);
  const auto here = [&](std::string message) {
    return YamlMistake{number, column, std::move(message)};
  };
  const bool in_map = says(said, "end of map not found");
  const bool in_list = says(said, "end of sequence not found");
  if ((in_map || in_list) && trim(line(number)).starts_with("- ")) {
    return here("this item is indented otherwise than the items above it");
  }
  if (in_map) {
    return here("this line does not fit the map around it: check the indentation and the `:`");
  }
  if (in_list) {
    return here("this line does not fit the list around it: check the indentation and the `-`");
  }
  if (says(said, "illegal map value")) return stray_colon(number, column);
  if (says(said, "anchor is not defined")) {
    return here("aliases (`*name`) are not supported: write the value out");
  }
  if (says(said, "not found after")) {  // `alias not found after *`, the place being that after it
    return {number, column - 1,
            fmt::format("`{}` cannot begin a value: put the value in quotes", said.back())};
  }
  const std::string_view rest = from_column(line(number), column);
  if (says(said, "unknown token") && !rest.empty()) {
    return here(fmt::format("`{}` cannot begin a value: put the value in quotes", rest.front()));
  }
  if (says(said, "flow end")) return here("this bracket closes nothing that is open");
  if (says(said, "block entry")) return here("an item of a list (`- …`) is not allowed here");
  return here(said);
}

}  // namespace mlenv
