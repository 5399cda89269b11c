#include "recipes/yaml.hpp"

#include <algorithm>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <streambuf>

#include <fmt/core.h>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "recipes/text.hpp"
#include "recipes/yaml_mistakes.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
/// Of another tool's: what lists all that is installed on several platforms is longer.
constexpr std::size_t kMaxForeignBytes = std::size_t{4} << 20U;
/// Values that aliases may stand for, all together: a few lines of them can mean billions.
constexpr std::size_t kMostAliased = 10'000;

/// Lets yaml-cpp read the text where it lies.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string& text) {
    setg(text.data(), text.data(), text.data() + text.size());
  }
};

/// Whose file it is: a recipe has no tags, anchors and aliases.
enum class YamlOf { recipe, others };

/// Ends the parse at the first thing that cannot be read on from.
struct Stop {};

/// Builds the tree from parse events. Events, not yaml-cpp's own tree, because that one merges
/// duplicate keys and expands aliases.
class Builder final : public YAML::EventHandler {
 public:
  Builder(YamlDocument& document, const YamlText& text, YamlOf whose)
      : document_(document), text_(text), whose_(whose) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    put(node(YamlNode::Kind::null, mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (whose_ == YamlOf::recipe) {
      mistake(mark, "aliases (`*name`) are not supported: write the value out");
      return put(node(YamlNode::Kind::null, mark), 0);
    }
    const auto known = anchored_.find(anchor);
    if (known == anchored_.end()) {
      mistake(mark, "this alias (`*name`) stands within what it names");
      throw Stop{};
    }
    YamlNode copy = known->second;
    const Extent extent = extent_of(copy);
    aliased_ += extent.values;
    if (aliased_ > kMostAliased || open_.size() + extent.depth > kMaxDepth) {
      mistake(mark, "aliases (`*name`) make more of the file than can be read");
      throw Stop{};
    }
    copy.line = mark.line + 1;
    copy.column = mark.column + 1;
    put(std::move(copy), 0);
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    if (whose_ == YamlOf::others) return;
    mistake(mark, "anchors (`&name`) are not supported: write the value where it is needed");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool bare = check_tag(mark, tag) && !is_foreign(tag) && anchor == 0;
    YamlNode scalar = node(YamlNode::Kind::scalar, mark);
    scalar.text = value;
    scalar.quoted = tag == "!";
    if (bare) check_extent(scalar);  // else the place is that of the anchor or tag
    put(std::move(scalar), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    check_tag(mark, tag);
    open(node(YamlNode::Kind::list, mark), mark, style, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    check_tag(mark, tag);
    open(node(YamlNode::Kind::map, mark), mark, style, anchor);
  }
  void OnMapEnd() override {
    if (whose_ == YamlOf::others) merge(open_.back());
    close();
  }

  /// Whether the values are not what their author meant: nothing more is to be said of them.
  bool unfit() const { return unfit_; }

  void mistake(const YAML::Mark& mark, std::string message) {
    document_.mistakes.push_back({mark.line + 1, mark.column + 1, std::move(message)});
  }

  /// The parser gave up there.
  void failed(const YAML::Mark& mark, const std::string& said) {
    if (in_brackets() && said.find("flow not found") != std::string::npos) {
      document_.mistakes.resize(before_brackets_);
      const YamlNode& opened = open_.back();
      document_.mistakes.push_back(
          {opened.line, opened.column,
           fmt::format("this `{}` is not closed, or a `,` is missing after it",
                       opened.kind == YamlNode::Kind::list ? '[' : '{')});
      return;
    }
    document_.mistakes.push_back(text_.explained(mark.line + 1, mark.column + 1, said));
  }

 private:
  static YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode made;
    made.kind = kind;
    made.line = mark.line + 1;
    made.column = mark.column + 1;
    return made;
  }

  // `?` is a plain scalar without a tag, `!` a quoted one; lists and maps have `?` or nothing.
  static bool is_foreign(const std::string& tag) {
    return !tag.empty() && tag != "?" && tag != "!";
  }
  bool check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!is_foreign(tag) || whose_ == YamlOf::others) return true;
    mistake(mark, "tags (`!name`) are not supported");
    return false;
  }

  bool in_brackets() const { return !brackets_.empty() && brackets_.back(); }

  /// Whether a text ends where its author will have thought.
  void check_extent(const YamlNode& scalar) {
    const auto wrong =
        scalar.quoted ? text_.unclosed_quote(scalar.line, scalar.column)
                      : text_.continued(scalar.line, scalar.column, scalar.text, in_brackets());
    // A shell's line that goes on.
    const bool goes_on = scalar.text.find(" \\ ") != std::string::npos;
    if (!wrong || (whose_ == YamlOf::others && !scalar.quoted && goes_on)) return;
    document_.mistakes.push_back(*wrong);
    // A bracket that is not closed explains it better: the parser will come to that.
    if (scalar.quoted || !in_brackets()) throw Stop{};
    unfit_ = true;
  }

  struct Extent {
    std::size_t values = 1;
    std::size_t depth = 0;  ///< of lists and maps
  };
  static Extent extent_of(const YamlNode& node) {
    Extent all;
    const auto count = [&](const YamlNode& one) {
      const Extent inner = extent_of(one);
      all.values += inner.values;
      all.depth = std::max(all.depth, inner.depth + 1);
    };
    for (const YamlNode& item : node.items) count(item);
    for (const YamlMember& member : node.members) count(member.value);
    return all;
  }

  /// `<<: *name`, and a list of such (YAML's "Merge Key Language-Independent Type"): what the map
  /// says itself goes before.
  static void merge(YamlNode& map) {
    const auto is_merge = [](const YamlMember& one) {
      return one.key.text == "<<" && !one.key.quoted;
    };
    if (std::none_of(map.members.begin(), map.members.end(), is_merge)) return;
    std::vector<YamlMember> own;
    std::vector<YamlMember> more;
    std::set<std::string> names;
    for (YamlMember& member : map.members) {
      if (!is_merge(member)) names.insert(member.key.text);
      (is_merge(member) ? more : own).push_back(std::move(member));
    }
    const auto take = [&](const YamlNode& other) {
      for (const YamlMember& member : other.members) {
        if (names.insert(member.key.text).second) own.push_back(member);
      }
    };
    for (const YamlMember& member : more) {
      take(member.value);
      for (const YamlNode& item : member.value.items) take(item);
    }
    map.members = std::move(own);
  }

  void open(YamlNode made, const YAML::Mark& mark, YAML::EmitterStyle::value style,
            YAML::anchor_t anchor) {
    if (open_.size() >= kMaxDepth) {
      mistake(mark, "nested too deeply");
      throw Stop{};
    }
    const bool flow = style == YAML::EmitterStyle::Flow;
    if (flow && !in_brackets()) before_brackets_ = document_.mistakes.size();
    open_.push_back(std::move(made));
    keys_.emplace_back();
    brackets_.push_back(flow);
    anchors_.push_back(anchor);
  }

  void close() {
    YamlNode done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    brackets_.pop_back();
    const YAML::anchor_t anchor = anchors_.back();
    anchors_.pop_back();
    put(std::move(done), anchor);
  }

  /// A finished value goes to the innermost open list or map, there alternately as key and value.
  void put(YamlNode done, YAML::anchor_t anchor) {
    if (anchor != 0 && whose_ == YamlOf::others) anchored_.insert_or_assign(anchor, done);
    if (open_.empty()) {
      document_.root = std::move(done);
      return;
    }
    YamlNode& parent = open_.back();
    if (parent.kind == YamlNode::Kind::list) {
      parent.items.push_back(std::move(done));
      return;
    }
    std::vector<YamlNode>& key = keys_.back();
    if (key.empty()) {
      key.push_back(std::move(done));
      return;
    }
    if (done.kind == YamlNode::Kind::null && done.line != key.back().line) {
      done.line = key.back().line;  // the parser gives the place of what follows
      done.column = key.back().column;
    }
    parent.members.push_back({std::move(key.back()), std::move(done)});
    key.clear();
  }

  YamlDocument& document_;
  const YamlText& text_;
  YamlOf whose_;
  std::vector<YamlNode> open_;
  std::vector<bool> brackets_;       ///< per open node: whether it is written in brackets
  std::size_t before_brackets_ = 0;  ///< mistakes found before the outermost open bracket
  bool unfit_ = false;
  std::map<YAML::anchor_t, YamlNode> anchored_;
  std::vector<YAML::anchor_t> anchors_;  ///< per open node; 0: none
  std::size_t aliased_ = 0;
  std::vector<std::vector<YamlNode>> keys_;  ///< per open node: a key that waits for its value
};

/// Place of a byte offset, before which all is UTF-8.
YamlMistake at_offset(std::string_view text, std::size_t offset, std::string message) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  int line = 1;
  for (const char c : before) line += c == '\n' ? 1 : 0;
  return {line, static_cast<int>(utf8_length(before.substr(line_start))) + 1, std::move(message)};
}

/// Columns come from yaml-cpp in bytes; people count characters.
class Columns {
 public:
  explicit Columns(std::string_view text) : text_(text) {
    for (std::size_t at = text.find('\n'); at != std::string_view::npos;
         at = text.find('\n', at + 1)) {
      starts_.push_back(at + 1);
    }
  }

  void fix(int line, int& column) {
    const auto row = static_cast<std::size_t>(line - 1);
    if (line < 1 || column < 1 || row >= starts_.size()) return;
    const auto width = std::min(static_cast<std::size_t>(column - 1), text_.size() - starts_[row]);
    // Counted from the place before, for a line may hold very many.
    if (row != row_ || width < width_) {
      row_ = row;
      width_ = 0;
      characters_ = 0;
    }
    characters_ += utf8_length(text_.substr(starts_[row] + width_, width - width_));
    width_ = width;
    column = static_cast<int>(characters_) + 1;
  }

  void fix(YamlNode& node) {
    fix(node.line, node.column);
    for (YamlNode& item : node.items) fix(item);
    for (auto& [key, value] : node.members) {
      fix(key);
      fix(value);
    }
  }

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_{0};
  std::size_t row_ = 0;         ///< of the place before
  std::size_t width_ = 0;       ///< bytes in front of it
  std::size_t characters_ = 0;  ///< in these
};

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

void read_document(std::string& text, YamlOf whose, YamlDocument& document) {
  const YamlText shown(text);
  Builder builder(document, shown, whose);
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  YamlDocument second;
  Builder rest(second, shown, whose);
  Builder* reading = &builder;
  // What is recorded may be so in a second document.
  const auto stopped = [&] {
    document.complete = false;
    document.mistakes.insert(document.mistakes.end(), second.mistakes.begin(),
                             second.mistakes.end());
  };
  try {
    YAML::Parser parser(stream);
    document.complete = true;
    if (!parser.HandleNextDocument(builder)) return;
    reading = &rest;
    if (parser.HandleNextDocument(rest)) {
      const bool marked = text.find("\n---") != std::string::npos;
      document.mistakes.push_back({second.root.line, second.root.column,
                                   marked ? "a recipe is one YAML document, this starts a second"
                                          : "this does not fit what stands above it"});
    }
  } catch (const YAML::Exception& error) {
    reading->failed(error.mark.is_null() ? YAML::Mark() : error.mark, error.msg);
    stopped();
  } catch (const Stop&) {
    stopped();
  }
  if (builder.unfit()) document.complete = false;
}

YamlDocument parse_with(std::string_view text, YamlOf whose) {
  YamlDocument document;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t most = whose == YamlOf::recipe ? kMaxBytes : kMaxForeignBytes;
  if (text.size() > most) {
    document.mistakes.push_back({1, 1, fmt::format("the file is larger than {} MiB", most >> 20U)});
    return document;
  }
  const std::size_t fault = utf8_fault(text);
  if (fault != std::string_view::npos) {
    document.mistakes.push_back(at_offset(text, fault, "the file is not UTF-8 text"));
    return document;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (has_control(text.substr(i, 1), "\t\r\n")) {
      document.mistakes.push_back(at_offset(text, i, "control characters are not allowed"));
      return document;
    }
  }
  std::string copy(text);
  read_document(copy, whose, document);
  const std::optional<MergeMarker> marker = merge_marker(text);
  if (marker && !document.complete) {
    document.mistakes = {
        {marker->line, 1, fmt::format("git left its conflict marker `{}` here", marker->text)}};
  }
  if (!is_ascii(text)) {
    Columns columns(text);
    columns.fix(document.root);
    for (YamlMistake& mistake : document.mistakes) columns.fix(mistake.line, mistake.column);
  }
  return document;
}

}  // namespace

YamlDocument parse_yaml(std::string_view text) { return parse_with(text, YamlOf::recipe); }

YamlDocument parse_foreign_yaml(std::string_view text) { return parse_with(text, YamlOf::others); }

}  // namespace mlenv
