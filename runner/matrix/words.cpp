#include "runner/matrix/words.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/text.hpp"
#include "runner/matrix/placeholders.hpp"

namespace mlenv::matrix {
namespace {

constexpr std::string_view kBadMatrix = "bad-matrix";

/// A text of the person's, with what is wrong in it.
class Source {
 public:
  Source(fs::path shown, std::string text)
      : text_(std::move(text)), mistakes_(std::move(shown), text_) {}
  std::string_view text() const { return text_; }
  void mistake(std::size_t at, std::string message) {
    const std::string_view before = std::string_view(text_).substr(0, at);
    const std::size_t begin = before.rfind('\n') + 1;  // of the line; 0 without one
    mistakes_.add(static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
                  static_cast<int>(utf8_length(before.substr(begin))) + 1, std::move(message));
  }
  void refuse_mistakes() const {
    if (!mistakes_.empty()) throw mistakes_.error(std::string(kBadMatrix));
  }

 private:
  std::string text_;
  Mistakes mistakes_;
};

/// One of several with commas between them.
struct Item {
  std::string text;
  std::size_t at = 0;  ///< in the source
  bool quoted = false;
};

class Items {
 public:
  /// Those from `at` to `end`.
  Items(Source& source, std::size_t at, std::size_t end) : source_(source), at_(at), end_(end) {}

  std::vector<Item> take() {
    std::vector<Item> items;
    do {
      skip_blanks();
      items.push_back(is('"') ? quoted() : plain());
    } while (is(',') && ++at_ <= end_);
    return items;
  }

 private:
  bool is(char c) const { return at_ < end_ && source_.text()[at_] == c; }
  void skip_blanks() {
    while (is(' ') || is('\t')) ++at_;
  }
  Item plain() {
    const std::size_t begin = at_;
    while (at_ < end_ && !is(',')) ++at_;
    return {std::string(trim(source_.text().substr(begin, at_ - begin))), begin, false};
  }
  Item quoted() {
    Item item{{}, at_++, true};
    while (at_ < end_) {
      const char c = source_.text()[at_++];
      if (c != '"') {
        item.text += c;
      } else if (is('"')) {
        item.text += source_.text()[at_++];
      } else {
        skip_blanks();
        if (at_ < end_ && !is(',')) {
          source_.mistake(at_, "a comma should follow a value in double quotes");
          at_ = end_;
        }
        return item;
      }
    }
    source_.mistake(item.at, "the double quote has no other");
    return item;
  }

  Source& source_;
  std::size_t at_;
  std::size_t end_;
};

void check_variable_name(Source& source, const std::string& name, std::size_t at) {
  if (!is_env_name(name)) {
    source.mistake(at, fmt::format("`{}` cannot be a variable's name (letters, digits and `_`, and "
                                   "no digit first)",
                                   name));
  } else if (name.starts_with("MLENV_") || is_own_placeholder(name)) {
    source.mistake(at, fmt::format("`{}` is mlenv's own; choose another name", name));
  }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  constexpr std::int64_t kMost = std::int64_t{1} << 53;  // differences of two are far from an end
  if (error != std::errc{} || rest != end || number > kMost || number < -kMost) return std::nullopt;
  return number;
}

/// Between `..`; nothing for what is no range of numbers, as `../data`.
std::vector<std::string_view> range_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t dots = 0; (dots = text.find("..")) != std::string_view::npos;) {
    parts.push_back(text.substr(0, dots));
    text.remove_prefix(dots + 2);
  }
  parts.push_back(text);
  const bool numbers = std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part.find_first_not_of("+-.0123456789eE") == std::string_view::npos &&
           part.find_first_of("0123456789") != std::string_view::npos;
  });
  return numbers ? parts : std::vector<std::string_view>{};
}

/// `08` and `12` are two wide; 0: as many digits as each number has.
std::size_t width_of(std::string_view from, std::string_view to) {
  const auto padded = [](std::string_view one) { return one.size() > 1 && one.front() == '0'; };
  return padded(from) || padded(to) ? std::max(from.size(), to.size()) : 0;
}

std::vector<std::string> range(Source& source, const Item& item,
                               const std::vector<std::string_view>& parts) {
  const auto wrong = [&](std::string message) {
    source.mistake(item.at, std::move(message));
    return std::vector<std::string>{};
  };
  constexpr std::size_t kMostParts = 3;
  const auto from = whole_number(parts[0]);
  const auto to = parts.size() > 1 ? whole_number(parts[1]) : std::nullopt;
  const auto step =
      parts.size() == kMostParts ? whole_number(parts[2]) : std::optional<std::int64_t>(1);
  if (!from || !to || !step || parts.size() > kMostParts) {
    return wrong(
        fmt::format("`{}` is no range of whole numbers (`1..5`, `1..9..2`); list other "
                    "values, or write \"{}\" in double quotes",
                    item.text, item.text));
  }
  if (*step == 0) return wrong("the range's step is 0");
  const std::int64_t way = *step > 0 ? *to - *from : *from - *to;
  if (way < 0) {
    return wrong(*step > 0 ? fmt::format("the range is empty; downwards it is `{}..{}..-1`",
                                         parts[0], parts[1])
                           : "the range is empty: its step leads away from its end");
  }
  const std::int64_t size = *step > 0 ? *step : -*step;
  const auto count = static_cast<std::size_t>(way / size) + 1;
  if (count > kMostVariations) {
    return wrong(fmt::format("the range has {} values; a matrix may have {} variations", count,
                             kMostVariations));
  }
  std::vector<std::string> values;
  const std::size_t width = width_of(parts[0], parts[1]);
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(fmt::format("{:0{}}", *from + static_cast<std::int64_t>(i) * *step, width));
  }
  return values;
}

/// The values that one item means.
std::vector<std::string> item_values(Source& source, const Item& item) {
  if (item.quoted) return {item.text};
  if (item.text.empty()) {
    source.mistake(item.at, "a value is missing here; an empty one is `\"\"`");
    return {};
  }
  const std::vector<std::string_view> parts = range_parts(item.text);
  if (parts.size() > 1) return range(source, item, parts);
  return {item.text};
}

/// Those of one parameter, from `begin` to the source's end.
void add_values(Source& source, std::size_t begin, Axis& axis) {
  std::set<std::string, std::less<>> seen;
  for (const Item& item : Items(source, begin, source.text().size()).take()) {
    for (std::string& value : item_values(source, item)) {
      const bool is_new = seen.insert(value).second;
      if (!is_new) source.mistake(item.at, fmt::format("the value `{}` is there twice", value));
      axis.rows.push_back({std::move(value)});
    }
  }
}

Axis parse_word(const std::string& word) {
  Source source{"--matrix", word};
  Axis axis;
  const std::size_t equals = word.find('=');
  axis.names = {word.substr(0, equals)};
  check_variable_name(source, axis.names.front(), 0);
  if (equals == std::string::npos) {
    source.mistake(word.size(), "`=` and values should follow: `lr=0.1,0.01`, `seed=1..5`");
  } else {
    add_values(source, equals + 1, axis);
  }
  source.refuse_mistakes();
  return axis;
}

std::string text_of_file(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  try {
    const Fd fd = open_file(path, O_RDONLY);
    FdSource source{fd.get()};
    return read_all(source, kMost);
  } catch (const Error& problem) {
    throw usage_error(std::string(kBadMatrix), "cannot read the matrix `{}`", path)
        .because(problem.frames().back());
  }
}

/// A line of a file.
void add_axis_row(Source& source, std::size_t begin, std::size_t end, Axis& axis) {
  std::vector<Item> items = Items(source, begin, end).take();
  if (axis.names.empty()) {
    for (const Item& item : items) {
      check_variable_name(source, item.text, item.at);
      if (std::find(axis.names.begin(), axis.names.end(), item.text) != axis.names.end()) {
        source.mistake(item.at, fmt::format("`{}` is there twice", item.text));
      }
      axis.names.push_back(item.text);
    }
    return;
  }
  if (items.size() != axis.names.size()) {
    source.mistake(begin, fmt::format("{} for {}", counted(items.size(), "value"),
                                      counted(axis.names.size(), "name")));
    return;
  }
  std::vector<std::string> row;
  for (Item& item : items) {
    if (has_control(item.text, "\t")) source.mistake(item.at, "a control character in a value");
    row.push_back(std::move(item.text));
  }
  if (std::find(axis.rows.begin(), axis.rows.end(), row) != axis.rows.end()) {
    source.mistake(begin, "the same values as in a line before");
  }
  axis.rows.push_back(std::move(row));
}

Axis parse_file(const std::string& path) {
  Source source{path, text_of_file(path)};
  const std::string_view text = source.text();
  Axis axis;
  std::size_t lines = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t line_end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trim(text.substr(begin, line_end - begin));
    const std::size_t shift = text.substr(begin).find_first_not_of(" \t");
    if (!line.empty() && line.front() != '#') {
      add_axis_row(source, begin + shift, begin + shift + line.size(), axis);
      ++lines;
    }
    begin = line_end + 1;
    if (axis.rows.size() > kMostVariations) break;
  }
  if (axis.names.empty()) {
    source.mistake(0, "the first line should name the parameters: `lr,seed`");
  } else if (lines == 1) {
    source.mistake(0, "no line of values follows the names");
  }
  source.refuse_mistakes();
  return axis;
}

void refuse_too_many(const std::vector<Axis>& axes) {
  std::size_t count = 1;
  std::string text;
  for (const Axis& axis : axes) {
    count *= std::min(axis.rows.size(), kMostVariations + 1);
    text += fmt::format("{}{} of `{}`", text.empty() ? "" : ", ",
                        counted(axis.rows.size(), "value"), join(axis.names, ","));
    if (count <= kMostVariations) continue;
    throw usage_error(std::string(kBadMatrix), "the matrix has more than {} variations",
                      kMostVariations)
        .because(text)
        .hint("fewer values, or a file that lists the variations: `--matrix @runs.csv`");
  }
}

}  // namespace

std::vector<Axis> parse_matrix(const std::vector<std::string>& words) {
  std::vector<Axis> axes;
  std::set<std::string, std::less<>> names;
  for (const std::string& word : words) {
    axes.push_back(word.starts_with('@') ? parse_file(word.substr(1)) : parse_word(word));
    for (const std::string& name : axes.back().names) {
      if (names.insert(name).second) continue;
      throw usage_error(std::string(kBadMatrix), "`--matrix` has the parameter `{}` twice", name)
          .hint(fmt::format("give all its values at once: `--matrix {}=A,B`", name));
    }
  }
  refuse_too_many(axes);
  return axes;
}

std::vector<std::string> names_of(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  for (const Axis& axis : axes) names.insert(names.end(), axis.names.begin(), axis.names.end());
  return names;
}

std::size_t count_of(const std::vector<Axis>& axes) {
  std::size_t count = 1;
  for (const Axis& axis : axes) count *= axis.rows.size();
  return count;
}

std::vector<Value> values_of(const std::vector<Axis>& axes, std::size_t variation) {
  std::vector<Value> values;
  std::size_t below = count_of(axes);
  for (const Axis& axis : axes) {
    below /= axis.rows.size();
    const std::vector<std::string>& row = axis.rows.at(variation / below % axis.rows.size());
    for (std::size_t i = 0; i < row.size(); ++i) values.push_back({axis.names[i], row[i]});
  }
  return values;
}

}  // namespace mlenv::matrix
