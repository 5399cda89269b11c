#include "recipes/requirement_text.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "recipes/package_address.hpp"
#include "recipes/project_name.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kNameUnderSources =
    "name it under `sources: {pypi: […]}` of the recipe, which counts for all of it";

/// pip's options, by their names.
struct PipOption {
  std::string_view name;
  std::string_view letter;
  bool has_value = true;
  std::string_view advice;  ///< why it cannot be honoured; empty: it is
};
constexpr std::string_view kInclude = "--requirement";
constexpr std::string_view kConstraint = "--constraint";
constexpr std::string_view kAllHashed = "--require-hashes";
constexpr std::string_view kHash = "--hash";
constexpr std::string_view kEditable = "--editable";
constexpr std::string_view kIndexUrl = "--index-url";
constexpr std::string_view kExtraIndex = "--extra-index-url";
constexpr std::string_view kFindLinks = "--find-links";
constexpr std::string_view kNoIndex = "--no-index";
/// Their values are held against what they are for by whoever takes them.
constexpr std::string_view kNoBinary = "--no-binary";
constexpr std::string_view kOnlyBinary = "--only-binary";
constexpr std::string_view kPreferBinary = "--prefer-binary";
constexpr std::string_view kPre = "--pre";
constexpr std::string_view kBuildConstraint = "--build-constraint";
constexpr std::string_view kConfigSettings = "--config-settings";
constexpr std::string_view kConfigSetting = "--config-setting";
constexpr std::array<std::string_view, 7> kSteeringOptions = {
    kNoBinary, kOnlyBinary, kPreferBinary, kPre, kBuildConstraint, kConfigSettings, kConfigSetting};
constexpr std::string_view kOldBuildOption =
    "it is of setuptools alone: write `build: {config-settings: {PACKAGE: {…}}}` in the recipe";
constexpr std::array<PipOption, 22> kPipOptions = {
    {{kInclude, "-r", true, {}},
     {kConstraint, "-c", true, {}},
     {kAllHashed, {}, false, {}},
     {kHash, {}, true, {}},
     {kOnlyBinary, {}, true, {}},
     {kIndexUrl, "-i", true, {}},
     {kExtraIndex, {}, true, {}},
     {"--pypi-url", {}, true, kNameUnderSources},
     {kNoIndex, {}, false, {}},
     {kFindLinks, "-f", true, {}},
     {"--trusted-host", {}, true, "certificates are always checked; `SSL_CERT_FILE` names others"},
     {kEditable, "-e", true, {}},  // an image is not edited: installed as it is
     {kNoBinary, {}, true, {}},
     {kPreferBinary, {}, false, {}},
     {kPre, {}, false, {}},
     {"--use-feature", {}, true, "it is about pip alone"},
     {"--global-option", {}, true, kOldBuildOption},
     {"--install-option", {}, true, kOldBuildOption},
     {kConfigSettings, "-C", true, {}},
     {kConfigSetting, {}, true, {}},
     {kBuildConstraint, {}, true, {}},
     {"--uploaded-prior-to", {}, true, "write the versions that are meant"}}};

bool is_quote(char c) { return c == '"' || c == '\''; }

/// An option's value as pip has it, which takes it apart as a shell does.
std::string unquoted(std::string_view value) {
  std::string out;
  char quote = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '\\' && quote != '\'' && i + 1 < value.size()) {
      out += value[++i];
    } else if (quote == 0 && is_quote(c)) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      out += c;
    }
  }
  return out;
}

/// A line with those that it goes on in, and where each part of it stands.
class Logical {
 public:
  void add(std::string_view part, int line) {
    parts_.push_back({text_.size(), line, part});
    text_ += part;
  }
  const std::string& text() const { return text_; }
  void cut(std::size_t at) { text_.resize(at); }
  bool empty() const { return parts_.empty(); }
  std::pair<int, int> place(std::size_t offset) const {
    auto part = parts_.begin();
    while (part + 1 != parts_.end() && (part + 1)->start <= offset) ++part;
    const std::string_view before = part->text.substr(0, offset - part->start);
    return {part->line, static_cast<int>(utf8_length(before)) + 1};
  }

 private:
  struct Part {
    std::size_t start;
    int line;
    std::string_view text;
  };
  std::vector<Part> parts_;
  std::string text_;
};

/// Where a comment begins: a `#` at the start or after a blank.
std::size_t comment_start(std::string_view text) {
  for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    if (at == 0 || is_blank(text[at - 1])) return at;
  }
  return text.size();
}

std::vector<Logical> logical_lines(std::string_view text) {
  std::vector<Logical> lines;
  Logical current;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    // A comment ends where its line does, whatever it ends in.
    const bool comment = comment_start(line) < line.size();
    const bool goes_on = line.ends_with('\\') && !comment;
    if (goes_on) line.remove_suffix(1);
    current.add(line, number);
    if (goes_on) continue;
    lines.push_back(std::move(current));
    current = {};
  }
  if (!current.empty()) lines.push_back(std::move(current));
  for (Logical& line : lines) line.cut(comment_start(line.text()));
  return lines;
}

std::optional<std::size_t> variable_start(std::string_view text) {
  for (std::size_t at = text.find("${"); at != std::string_view::npos;
       at = text.find("${", at + 1)) {
    const std::string_view name = text.substr(at + 2, text.find('}', at) - at - 2);
    if (text.find('}', at) != std::string_view::npos && is_env_name(name)) return at;
  }
  return std::nullopt;
}

class LineReader {
 public:
  LineReader(const Logical& line, Mistakes& mistakes) : line_(line), mistakes_(mistakes) {}

  std::vector<RequirementLine> read() {
    const std::string& text = line_.text();
    skip_blanks();
    if (at_ >= text.size()) return {};
    if (const auto variable = variable_start(text)) {
      mistake(*variable, "a lock cannot depend on environment variables: write the value itself");
      return {};
    }
    if (text[at_] != '-') requirement();
    while (skip_blanks(), at_ < text.size() && good_) option();
    check_hashes();
    return good_ ? std::move(found_) : std::vector<RequirementLine>{};
  }

 private:
  void skip_blanks() {
    while (at_ < line_.text().size() && is_blank(line_.text()[at_])) ++at_;
  }
  void mistake(std::size_t offset, std::string message) {
    const auto [line, column] = line_.place(offset);
    mistakes_.add(line, column, std::move(message));
    good_ = false;
  }
  RequirementLine placed(LineKind what, std::string text, std::size_t offset) const {
    const auto [line, column] = line_.place(offset);
    return {what, std::move(text), {}, {}, {}, line, column, {}, {}};
  }

  /// Up to the first option.
  void requirement() {
    const std::string& text = line_.text();
    const std::size_t start = at_;
    while (at_ < text.size() && (text[at_] != '-' || !is_blank(text[at_ - 1]))) ++at_;
    requirement(trim(std::string_view(text).substr(start, at_ - start)), start);
  }

  void requirement(std::string_view own, std::size_t start) {
    if (nameless(own, start)) return;
    const auto read = parse_requirement(own);
    if (const auto* wrong = std::get_if<RequirementMistake>(&read)) {
      mistake(start + wrong->offset, wrong->message);
      return;
    }
    found_.push_back(placed(LineKind::requirement, std::get<Requirement>(read).str(), start));
    pinned_ = std::get<Requirement>(read).specifier.starts_with("==") &&
              std::get<Requirement>(read).specifier.find_first_of(",*") == std::string::npos;
    if (!std::get<Requirement>(read).address.empty()) {
      const auto address = parse_package_address(std::get<Requirement>(read).address);
      pinned_ = parse_release_file(std::get<PackageAddress>(address).file()).has_value();
    }
  }

  /// `./libs/x[dev] ; marker`, where the address does not tell whose it is. True also after a
  /// mistake.
  bool nameless(std::string_view own, std::size_t start) {
    if (!is_bare_address(own)) return false;
    const std::size_t semicolon = std::min(own.find(" ;"), own.size());
    std::string_view path = trim(own.substr(0, semicolon));
    std::string_view extras;
    const std::size_t open = path.rfind('[');
    if (path.ends_with(']') && open != std::string_view::npos) {
      extras = path.substr(open);
      path = path.substr(0, open);
    }
    std::string name;
    const auto read = parse_package_address(path, &name);
    const auto* address = std::get_if<PackageAddress>(&read);
    if (address == nullptr) return false;  // said by whoever reads it as a requirement
    if (address->kind != PackageAddress::Kind::path || address->is_wheel() || !name.empty()) {
      return false;
    }
    RequirementLine line = placed(LineKind::nameless, address->str(), start);
    line.extras = extras;
    if (semicolon < own.size()) line.marker = trim(own.substr(semicolon + 2));
    pinned_ = parse_release_file(address->file()).has_value();
    found_.push_back(std::move(line));
    return true;
  }

  /// As written; a blank in quotes or behind a `\` does not end it.
  std::string_view word() {
    const std::string_view rest = std::string_view(line_.text()).substr(at_);
    char quote = 0;
    std::size_t end = 0;
    for (; end < rest.size() && (quote != 0 || !is_blank(rest[end])); ++end) {
      const char c = rest[end];
      if (c == '\\' && quote != '\'') {
        end = std::min(end + 1, rest.size() - 1);
      } else if (quote == 0 && is_quote(c)) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      }
    }
    if (quote != 0) mistake(at_, "a quote is not closed");
    at_ += end;
    return rest.substr(0, end);
  }

  void option() {
    const std::size_t start = at_;
    const std::string_view whole = word();
    if (!good_) return;
    const std::string_view name = whole.substr(0, whole.find('='));
    for (const PipOption& known : kPipOptions) {
      const bool is_long = name == known.name;
      const bool is_short =
          !known.letter.empty() && whole.starts_with(known.letter) && !whole.starts_with("--");
      if (!is_long && !is_short) continue;
      if (!known.advice.empty()) {
        mistake(start, fmt::format("`{}` is not supported here: {}", known.name, known.advice));
        return;
      }
      // -r FILE, -rFILE, --requirement FILE, --requirement=FILE
      const std::size_t joined = is_short ? known.letter.size() : known.name.size() + 1;
      std::size_t value_at = start + std::min(joined, whole.size());
      std::string_view value = whole.substr(std::min(joined, whole.size()));
      if (known.has_value && value.empty()) {
        skip_blanks();
        value_at = at_;
        value = word();
      }
      if (good_) take(known, unquoted(value), start, value_at);
      return;
    }
    std::vector<std::string_view> names;
    for (const PipOption& known : kPipOptions) names.push_back(known.name);
    mistake(start, name.starts_with('-')
                       ? fmt::format("unknown option `{}`{}", name, suggestion(name, names))
                       : fmt::format("`{}` stands after an option; a value with blanks is written "
                                     "in quotes",
                                     whole));
  }

  void take(const PipOption& option, const std::string& value, std::size_t start,
            std::size_t value_at) {
    if (option.has_value && value.empty()) {
      mistake(start, fmt::format("a value is missing after `{}`", option.name));
      return;
    }
    if (option.name == kHash) {
      hash(value, start, value_at);
    } else if (option.name == kInclude || option.name == kConstraint) {
      const LineKind what = option.name == kInclude ? LineKind::include : LineKind::constraints;
      found_.push_back(placed(what, value, value_at));
    } else if (option.name == kEditable) {
      requirement(value, value_at);
    } else if (option.name == kAllHashed) {
      found_.push_back(placed(LineKind::all_hashed, {}, start));
    } else if (option.name == kIndexUrl || option.name == kExtraIndex ||
               option.name == kFindLinks || option.name == kNoIndex) {
      found_.push_back(placed(LineKind::index, value, option.has_value ? value_at : start));
      found_.back().option = option.name;
    } else if (is_among(kSteeringOptions, option.name)) {
      steering(option, value, option.has_value ? value_at : start);
    }
  }

  /// Behind a requirement it is of that package alone.
  void steering(const PipOption& option, const std::string& value, std::size_t at) {
    RequirementLine line = placed(LineKind::steering, value, at);
    line.option = option.name;
    if (!found_.empty() && found_.front().what == LineKind::requirement) {
      const auto read = parse_requirement(found_.front().text);
      line.package = std::get<Requirement>(read).normalised_name();
    }
    found_.push_back(std::move(line));
  }

  void hash(std::string_view value, std::size_t start, std::size_t value_at) {
    const bool follows = !found_.empty() && (found_.front().what == LineKind::requirement ||
                                             found_.front().what == LineKind::nameless);
    if (!follows) {
      mistake(start, "`--hash` stands after the requirement that it is of");
      return;
    }
    hash_at_ = hash_at_.value_or(start);
    const std::size_t colon = value.find(':');
    const std::string_view algorithm = value.substr(0, colon);
    if (colon == std::string_view::npos) {
      mistake(value_at, "a hash is written `sha256:` and 64 hex digits");
      return;
    }
    if (algorithm != "sha256") return;  // others may stand beside it
    try {
      found_.front().sha256.insert(Digest::from_hex(value.substr(colon + 1)).hex());
    } catch (const Error&) {
      mistake(value_at, "a hash is written `sha256:` and 64 lower-case hex digits");
    }
  }

  void check_hashes() {
    if (!good_ || !hash_at_) return;
    if (!pinned_) {
      mistake(*hash_at_,
              "a hash is of one release: write its version with `==`, or the address of "
              "its file");
    } else if (found_.front().sha256.empty()) {
      mistake(*hash_at_, "there is no `sha256` among the hashes, the only ones that mlenv checks");
    }
  }

  const Logical& line_;
  Mistakes& mistakes_;
  std::vector<RequirementLine> found_;
  std::optional<std::size_t> hash_at_;
  std::size_t at_ = 0;
  bool pinned_ = false;
  bool good_ = true;
};

}  // namespace

std::vector<RequirementLine> parse_requirement_lines(std::string_view text, Mistakes& mistakes) {
  const std::size_t fault = utf8_fault(text);
  if (fault != std::string_view::npos) {
    const std::string_view before = text.substr(0, fault);
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    mistakes.add(line, 1, "the file is not UTF-8 text");
    return {};
  }
  std::vector<RequirementLine> all;
  for (const Logical& line : logical_lines(text)) {
    for (RequirementLine& one : LineReader(line, mistakes).read()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace mlenv
