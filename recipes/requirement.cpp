#include "recipes/requirement.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/marker.hpp"
#include "recipes/package_address.hpp"
#include "recipes/text.hpp"
#include "recipes/version_syntax.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

bool is_name_char(char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; }
bool is_version_char(char c) { return is_name_char(c) || c == '*' || c == '+' || c == '!'; }

struct RequirementFault {
  RequirementMistake mistake;
};

class RequirementReader {
 public:
  explicit RequirementReader(std::string_view text) : text_(text) {}

  Requirement read() {
    Requirement made;
    skip_blanks();
    made.name = name("a package name");
    skip_blanks();
    if (take('[')) made.extras = extras();
    skip_blanks();
    if (take('@')) {
      address(made);
    } else {
      versions(made);
    }
    skip_blanks();
    if (take(';')) marker(made);
    if (at_ < text_.size()) fail(fmt::format("`{}` is not part of a requirement", rest()));
    return made;
  }

  /// An address alone, where that tells whose it is.
  Requirement read_bare() {
    Requirement made;
    address(made);
    if (made.name.empty()) {
      at_ = 0;
      fail(fmt::format("say which package that is: `NAME @ {}`", made.address));
    }
    if (take(';')) marker(made);
    return made;
  }

 private:
  void versions(Requirement& made) {
    const bool parenthesised = take('(');
    made.specifier = specifiers(parenthesised);
  }

  /// Behind its `;`.
  void marker(Requirement& made) {
    skip_blanks();
    made.marker = std::string(trim(text_.substr(at_)));
    if (made.marker.empty()) fail("a marker is missing after `;`");
    if (const auto wrong = marker_mistake(made.marker)) {
      at_ += wrong->offset;
      fail(wrong->message);
    }
    at_ = text_.size();
  }

  /// Up to ` ;`, since a URL may hold a `;` itself. Stops at the `;`.
  void address(Requirement& made) {
    skip_blanks();
    const std::size_t end = std::min(rest().find(" ;"), rest().size());
    std::string name;
    const auto read = parse_package_address(rest().substr(0, end), &name);
    if (const auto* wrong = std::get_if<AddressMistake>(&read)) fail(wrong->message);
    const auto& found = std::get<PackageAddress>(read);
    if (made.name.empty() && found.is_wheel()) {
      const std::string file = found.file();
      if (const auto wheel = parse_wheel_name(file)) name = wheel->name;
    }
    if (made.name.empty() && is_wheel_name(normalise_wheel_name(name))) made.name = name;
    made.address = found.str();
    at_ = std::min(at_ + end + 1, text_.size());
  }

  [[noreturn]] void fail(std::string message) const {
    throw RequirementFault{{std::min(at_, text_.size()), std::move(message)}};
  }
  std::string_view rest() const { return text_.substr(at_); }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  template <typename Accept>
  std::string_view run(Accept accept) {
    const std::size_t start = at_;
    while (at_ < text_.size() && accept(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  std::string name(std::string_view what) {
    const std::string_view found = run(is_name_char);
    if (found.empty()) fail(fmt::format("{} is missing", what));
    if (!is_alphanumeric(found.front()) || !is_alphanumeric(found.back())) {
      at_ -= found.size();
      fail(fmt::format("`{}` is not a package name", found));
    }
    return std::string(found);
  }

  std::vector<std::string> extras() {
    std::vector<std::string> found;
    skip_blanks();
    while (!take(']')) {
      if (!found.empty() && !take(',')) fail("`]` is missing after the extras");
      skip_blanks();
      found.push_back(name("an extra"));
      skip_blanks();
    }
    return found;
  }

  std::string specifiers(bool parenthesised) {
    std::string all;
    skip_blanks();
    while (at_ < text_.size() && text_[at_] != ';' && text_[at_] != ')') {
      if (!all.empty()) {
        if (!take(',')) fail(fmt::format("`,` is missing before `{}`", rest()));
        all += ',';
        skip_blanks();
      }
      all += specifier();
      skip_blanks();
    }
    if (parenthesised && !take(')')) fail("`)` is missing");
    return all;
  }

  std::string specifier() {
    const std::string_view sign =
        run([](char c) { return c == '=' || c == '<' || c == '>' || c == '!' || c == '~'; });
    constexpr std::array<std::string_view, 8> kSigns = {
        "==", "!=", "<=", ">=", "~=", "<", ">", "==="};
    if (std::find(kSigns.begin(), kSigns.end(), sign) == kSigns.end()) {
      at_ -= sign.size();
      if (sign == "=") fail("`=` is not a version operator; did you mean `==`?");
      fail(sign.empty() ? fmt::format("`{}` is not a version specifier (as in `>=2.9`)", rest())
                        : fmt::format("`{}` is not a version operator", sign));
    }
    skip_blanks();
    const std::string_view version = run(is_version_char);
    if (version.empty()) fail(fmt::format("a version is missing after `{}`", sign));
    if (const std::string mistake = version_mistake(sign, version); !mistake.empty()) {
      at_ -= version.size();
      fail(mistake);
    }
    return std::string(sign) + std::string(version);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string Requirement::normalised_name() const { return normalise_wheel_name(name); }

std::string Requirement::str() const {
  std::string text = name;
  if (!extras.empty()) text += '[' + join(extras, ",") + ']';
  text += specifier;
  if (!address.empty()) text += " @ " + address;
  if (!marker.empty()) text += " ; " + marker;
  return text;
}

std::variant<Requirement, RequirementMistake> parse_requirement(std::string_view text) {
  if (text.size() > 4096) return RequirementMistake{0, "a requirement this long is not plausible"};
  if (has_control(text)) return RequirementMistake{0, "control characters are not allowed"};
  if (trim(text).starts_with('-')) {
    return RequirementMistake{0, "options are not supported here, only requirements"};
  }
  try {
    return is_bare_address(text) ? RequirementReader(text).read_bare()
                                 : RequirementReader(text).read();
  } catch (const RequirementFault& fault) {
    return fault.mistake;
  }
}

}  // namespace mlenv
