#include "recipes/list_edit.hpp"

#include <algorithm>
#include <array>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string in_quotes(std::string_view text, char quote) {
  std::string result(1, quote);
  for (const char c : text) {
    if (c == '\'' && quote == '\'') result += '\'';  // `''` is one
    if (quote == '"' && (c == '"' || c == '\\')) result += '\\';
    result += c;
  }
  return result + quote;
}

/// As YAML: plain where that reads as the same text.
std::string item_scalar(std::string_view text, bool flow) {
  constexpr std::array<std::string_view, 4> kNulls = {"null", "Null", "NULL", "~"};
  const std::string_view others = flow ? "._-+<>=!()* ;" : "._-+<>=!()* ;,[]";
  const bool plain =
      !text.empty() && (is_letter(text.front()) || is_digit(text.front())) &&
      std::find(kNulls.begin(), kNulls.end(), text) == kNulls.end() &&
      std::all_of(text.begin(), text.end(), [&](char c) {
        return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
      });
  if (plain) return std::string(text);
  return in_quotes(text, text.find('"') == std::string_view::npos ? '"' : '\'');
}

/// In quotes where it might be read as a number.
std::string text_scalar(std::string_view text, bool flow) {
  return is_letter(text.empty() ? ' ' : text.front()) ? item_scalar(text, flow)
                                                      : in_quotes(text, '"');
}

/// Where the quoted text that begins at `open` ends; npos when it does not.
std::size_t closing_quote(std::string_view text, std::size_t open) {
  const char quote = text[open];
  for (std::size_t at = open + 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || !text.substr(at + 1).starts_with('\'')) return at;
      ++at;  // `''` is a quote within the text
    }
  }
  return std::string_view::npos;
}

}  // namespace

ListEdit::ListEdit(std::string_view text, std::string_view key)
    : mark_(text.starts_with(kByteOrderMark) ? kByteOrderMark : ""),
      text_(text.substr(mark_.size())),
      key_(key),
      document_(parse_yaml(text_)) {
  for (const YamlMember& member : document_.root.members) {
    if (member.key.text == key_) member_ = &member;
  }
}

std::optional<std::string> ListEdit::append(std::string_view item,
                                            std::span<const std::string_view> anchors) const {
  if (member_ == nullptr) return add_key("[" + item_scalar(item, true) + "]", anchors);
  if (member_->value.kind == YamlKind::null) return fill(item);
  if (member_->value.kind != YamlKind::list) return std::nullopt;
  return in_flow(member_->value) ? append_flow(item) : append_block(item);
}

std::optional<std::string> ListEdit::replace(std::size_t at, std::string_view item) const {
  const std::optional<Extent> old = extent(member_->value.items.at(at));
  if (!old) return std::nullopt;
  const char first = text_[old->from];
  const bool quoted = first == '"' || first == '\'';
  return with(old->from, old->to,
              quoted ? in_quotes(item, first) : item_scalar(item, in_flow(member_->value)));
}

std::optional<std::string> ListEdit::remove(std::size_t at) const {
  return in_flow(member_->value) ? remove_flow(at) : remove_block(at);
}

std::optional<std::string> ListEdit::set(std::string_view text,
                                         std::span<const std::string_view> anchors) const {
  if (member_ == nullptr) return add_key(text_scalar(text, map_in_flow()), anchors);
  if (member_->value.kind != YamlKind::scalar) return std::nullopt;
  const std::optional<Extent> old = extent(member_->value);
  if (!old) return std::nullopt;
  const char first = text_[old->from];
  const bool quoted = first == '"' || first == '\'';
  return with(old->from, old->to,
              quoted ? in_quotes(text, first) : text_scalar(text, map_in_flow()));
}

std::optional<std::string> ListEdit::remove_key() const {
  if (map_in_flow()) return std::nullopt;
  const std::vector<YamlMember>& members = document_.root.members;
  const auto index = static_cast<std::size_t>(member_ - members.data());
  const std::size_t key = offset(member_->key);
  const std::size_t from = start_of_line(key);
  const bool owns_line = trim(between(from, key)).empty();
  if (!owns_line || members.size() == 1) return std::nullopt;
  const std::size_t end = text_.find('\n', end_of_member(index));
  return with(from, end == std::string::npos ? text_.size() : end + 1, "");
}

ListEdit::Edited ListEdit::append_flow(std::string_view item) const {
  const std::string shown = item_scalar(item, true);
  const std::vector<YamlNode>& items = member_->value.items;
  if (items.empty()) {
    const std::size_t inside = offset(member_->value) + 1;
    const std::size_t next = skip_blanks(inside);
    return with(inside, between(next, next + 1) == "]" ? next : inside, shown);
  }
  const std::optional<Extent> last = extent(items.back());
  if (!last) return std::nullopt;
  if (!starts_its_line(last->from)) return with(last->to, last->to, ", " + shown);
  const std::size_t start = start_of_line(last->from);
  const std::string indented = line_end() + std::string(between(start, last->from)) + shown;
  const std::size_t comma = after_comma(last->to);
  if (!only_comment_follows(comma)) return with(last->to, last->to, "," + indented);
  const std::size_t end = end_of_line(comma);
  const bool had_comma = comma != last->to;
  std::string rest{between(last->to, end)};
  return with(last->to, end, (had_comma ? "" : ",") + rest + indented + (had_comma ? "," : ""));
}

ListEdit::Edited ListEdit::append_block(std::string_view item) const {
  const std::optional<Extent> last = block_item(member_->value.items.back());
  if (!last) return std::nullopt;
  const std::size_t from = offset(member_->value.items.back());
  const std::size_t end = end_of_line(last->to);
  return with(end, end,
              line_end() + std::string(between(last->from, from)) + item_scalar(item, false));
}

ListEdit::Edited ListEdit::fill(std::string_view item) const {
  const std::optional<Extent> key = extent(member_->key);
  if (!key) return std::nullopt;
  const std::size_t colon = skip_blanks(key->to);
  if (between(colon, colon + 1) != ":") return std::nullopt;
  const std::string list = "[" + item_scalar(item, true) + "]";
  const std::size_t value = skip_blanks(colon + 1);
  for (const std::string_view null : {"~", "null", "Null", "NULL"}) {
    if (between(value, value + null.size()) == null) return with(value, value + null.size(), list);
  }
  return with(colon + 1, colon + 1, " " + list);
}

ListEdit::Edited ListEdit::add_key(std::string_view value,
                                   std::span<const std::string_view> anchors) const {
  const std::vector<YamlMember>& members = document_.root.members;
  if (members.empty()) return std::nullopt;
  const std::string entry = key_ + ": " + std::string(value);
  if (map_in_flow()) {
    const std::optional<std::size_t> end = end_of_value(members.back().value);
    if (!end) return std::nullopt;
    return with(*end, *end, ", " + entry);
  }
  std::size_t anchor = members.size() - 1;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const bool is_one =
        std::find(anchors.begin(), anchors.end(), members[i].key.text) != anchors.end();
    if (is_one) anchor = i;
  }
  const std::size_t key = offset(members[anchor].key);
  const std::string_view indentation = between(start_of_line(key), key);
  if (!trim(indentation).empty()) return std::nullopt;
  const std::string line = line_end() + std::string(indentation) + entry;
  if (const auto shown = end_of_shown(indentation)) {
    std::string text = with(*shown, *shown, line);
    const YamlDocument made = parse_yaml(text);
    // Else it was no comment.
    if (made.mistakes.empty() && made.root.members.size() == members.size() + 1) return text;
  }
  const std::size_t end = end_of_member(anchor);
  return with(end, end, line);
}

/// Of the key as a comment, `# packages:`, and the lines that go with it, `#   - numpy`.
std::optional<std::size_t> ListEdit::end_of_shown(std::string_view indentation) const {
  const std::string mark = std::string(indentation) + '#';
  const auto depth_of = [&](std::string_view line) {
    return std::min(line.find_first_not_of(' ', mark.size()), line.size());
  };
  std::optional<std::size_t> depth;  // of the key
  std::size_t end = 0;
  for (std::size_t at = 0; at < text_.size();) {
    const std::string_view line = between(at, end_of_line(at));
    const bool comment = line.starts_with(mark);
    if (depth && (!comment || depth_of(line) <= *depth)) break;
    const std::string_view said = comment ? line.substr(depth_of(line)) : std::string_view{};
    if (!depth && said.starts_with(key_) && trim(said.substr(key_.size())).starts_with(':')) {
      depth = depth_of(line);
    }
    if (depth) end = end_of_line(at);
    const std::size_t next = text_.find('\n', at);
    at = next == std::string::npos ? text_.size() : next + 1;
  }
  if (!depth) return std::nullopt;
  return end;
}

ListEdit::Edited ListEdit::remove_flow(std::size_t at) const {
  const std::vector<YamlNode>& items = member_->value.items;
  const std::optional<Extent> item = extent(items.at(at));
  if (!item) return std::nullopt;
  const std::size_t comma = after_comma(item->to);
  if (starts_its_line(item->from) && only_comment_follows(comma)) {
    const std::size_t end = text_.find('\n', comma);
    if (end == std::string::npos) return std::nullopt;
    return with(start_of_line(item->from), end + 1, "");
  }
  if (at + 1 < items.size()) {
    const std::size_t next = offset(items[at + 1]);
    const bool on_one_line = end_of_line(item->to) >= next;
    if (on_one_line) return with(item->from, next, "");
    if (comma == item->to) return std::nullopt;
    std::size_t from = item->from;
    const bool comment = skip_blanks(comma) != end_of_line(comma);
    while (!comment && from > 0 && is_blank(text_[from - 1])) --from;
    return with(from, comment ? skip_blanks(comma) : comma, "");
  }
  if (at > 0) {
    const std::optional<Extent> before = extent(items[at - 1]);
    if (!before) return std::nullopt;
    const bool comment = between(before->to, item->from).find('#') != std::string_view::npos;
    if (!comment) return with(before->to, item->to, "");
  }
  return with(item->from, comma, "");
}

ListEdit::Edited ListEdit::remove_block(std::size_t at) const {
  const std::optional<Extent> item = block_item(member_->value.items.at(at));
  if (!item) return std::nullopt;
  const std::size_t end = text_.find('\n', item->to);
  if (end != std::string::npos) return with(item->from, end + 1, "");
  // The last line of a text without a last line end.
  std::size_t from = item->from;
  if (from > 0) --from;
  if (from > 0 && text_[from - 1] == '\r') --from;
  return with(from, text_.size(), "");
}

std::size_t ListEdit::end_of_member(std::size_t index) const {
  const std::vector<YamlMember>& members = document_.root.members;
  const auto own_column = static_cast<std::size_t>(members[index].key.column);
  const std::size_t limit =
      index + 1 < members.size() ? start_of_line(offset(members[index + 1].key)) : text_.size();
  std::size_t last = start_of_line(offset(members[index].key));
  for (std::size_t at = last; at < limit; at = text_.find('\n', at) + 1) {
    const std::string_view line = between(at, end_of_line(at));
    const std::size_t first = line.find_first_not_of(" \t");
    if (line.starts_with("...")) break;
    // A comment further left belongs to what follows.
    const bool others = first != std::string_view::npos && line[first] == '#' && first < own_column;
    if (first != std::string_view::npos && !others) last = at;
    if (text_.find('\n', at) == std::string::npos) break;
  }
  return end_of_line(last);
}

std::size_t ListEdit::offset(const YamlNode& node) const {
  std::size_t at = 0;
  for (int line = 1; line < node.line; ++line) at = text_.find('\n', at) + 1;
  for (int column = 1; column < node.column && at < text_.size(); ++column) {
    do {
      ++at;
    } while (at < text_.size() && (static_cast<unsigned>(text_[at]) & 0xC0U) == 0x80);
  }
  return at;
}

std::optional<ListEdit::Extent> ListEdit::extent(const YamlNode& scalar) const {
  const std::size_t from = offset(scalar);
  if (!scalar.quoted) {
    if (between(from, from + scalar.text.size()) != scalar.text) return std::nullopt;
    return Extent{from, from + scalar.text.size()};
  }
  const char quote = from < text_.size() ? text_[from] : '\0';
  if (quote != '"' && quote != '\'') return std::nullopt;  // a block scalar
  const std::size_t end = closing_quote(text_, from);
  if (end == std::string::npos) return std::nullopt;
  return Extent{from, end + 1};
}

std::optional<ListEdit::Extent> ListEdit::block_item(const YamlNode& item) const {
  const std::optional<Extent> text = extent(item);
  if (!text) return std::nullopt;
  const std::size_t start = start_of_line(text->from);
  if (trim(between(start, text->from)) != "-") return std::nullopt;
  return Extent{start, text->to};
}

std::optional<std::size_t> ListEdit::end_of_value(const YamlNode& node) const {
  if (node.kind == YamlKind::list || node.kind == YamlKind::map)
    return closing_bracket(offset(node)) + 1;
  if (node.kind == YamlKind::null) return std::nullopt;
  const std::optional<Extent> found = extent(node);
  if (!found) return std::nullopt;
  return found->to;
}

/// In brackets a `#` after a blank begins a comment, and a quote begins a quoted text where a
/// scalar may begin.
std::size_t ListEdit::closing_bracket(std::size_t open) const {
  int depth = 0;
  for (std::size_t at = open; at < text_.size(); ++at) {
    const char c = text_[at];
    const char before = at > 0 ? text_[at - 1] : '\n';
    if (c == '#' && (is_blank(before) || before == '\n')) {
      at = end_of_line(at);
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      if (--depth == 0) return at;
    } else if ((c == '"' || c == '\'') &&
               std::string_view(" \t\n[{,:").find(before) != std::string_view::npos) {
      at = std::min(closing_quote(text_, at), text_.size());
    }
  }
  return text_.size();
}

std::size_t ListEdit::start_of_line(std::size_t at) const {
  return at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;  // npos + 1 is 0
}

std::size_t ListEdit::end_of_line(std::size_t at) const {
  std::size_t end = std::min(text_.find('\n', at), text_.size());
  if (end > at && text_[end - 1] == '\r') --end;
  return end;
}

std::size_t ListEdit::skip_blanks(std::size_t at) const {
  while (at < text_.size() && is_blank(text_[at])) ++at;
  return at;
}

/// Behind the `,` that follows on the line; `at` where none does.
std::size_t ListEdit::after_comma(std::size_t at) const {
  const std::size_t next = skip_blanks(at);
  return between(next, next + 1) == "," ? next + 1 : at;
}

std::string_view ListEdit::between(std::size_t from, std::size_t to) const {
  from = std::min(from, text_.size());
  return std::string_view(text_).substr(from, std::max(from, to) - from);
}

bool ListEdit::only_comment_follows(std::size_t at) const {
  const std::string_view rest = trim(between(at, end_of_line(at)));
  return rest.empty() || rest.front() == '#';
}

bool ListEdit::starts_its_line(std::size_t at) const {
  return trim(between(start_of_line(at), at)).empty();
}

bool ListEdit::in_flow(const YamlNode& node) const {
  const std::size_t at = offset(node);
  return between(at, at + 1) == "[";
}

bool ListEdit::map_in_flow() const {
  const std::size_t at = offset(document_.root);
  return between(at, at + 1) == "{";
}

std::string ListEdit::line_end() const {
  const std::size_t first = text_.find('\n');
  const bool windows = first != std::string::npos && first > 0 && text_[first - 1] == '\r';
  return windows ? "\r\n" : "\n";
}

std::string ListEdit::with(std::size_t from, std::size_t to, std::string_view middle) const {
  return mark_ + text_.substr(0, from) + std::string(middle) + text_.substr(to);
}

}  // namespace mlenv
