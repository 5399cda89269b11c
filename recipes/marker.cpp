#include "recipes/marker.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/core.h>

#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kDeepestMarker = 32;

/// With the older names that PEP 508 and setuptools still know.
constexpr std::array<std::string_view, 20> kVariables = {"python_version",
                                                         "python_full_version",
                                                         "os_name",
                                                         "sys_platform",
                                                         "platform_release",
                                                         "platform_system",
                                                         "platform_version",
                                                         "platform_machine",
                                                         "platform_python_implementation",
                                                         "implementation_name",
                                                         "implementation_version",
                                                         "extra",
                                                         "extras",
                                                         "dependency_groups",
                                                         "os.name",
                                                         "sys.platform",
                                                         "platform.version",
                                                         "platform.machine",
                                                         "platform.python_implementation",
                                                         "python_implementation"};
constexpr std::array<std::string_view, 8> kOperators = {
    "===", "==", "~=", "!=", "<=", ">=", "<", ">"};

struct Operand {
  bool is_variable = false;
  std::string_view text;  ///< a variable's name, or what stands in quotes
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What a variable says; none for those that stand for sets.
std::string_view variable_value(std::string_view variable, const MarkerEnvironment& environment,
                                const std::string& python_minor) {
  if (variable == "python_version") return python_minor;
  if (is_one_of(variable, {"python_full_version", "implementation_version"})) {
    return environment.python;
  }
  if (is_one_of(variable, {"os_name", "os.name"})) return "posix";
  if (is_one_of(variable, {"sys_platform", "sys.platform"})) return "linux";
  if (variable == "platform_system") return "Linux";
  if (is_one_of(variable, {"platform_machine", "platform.machine"})) return environment.machine;
  if (variable == "implementation_name") return "cpython";
  if (is_one_of(variable, {"platform_python_implementation", "platform.python_implementation",
                           "python_implementation"})) {
    return "CPython";
  }
  return {};
}

/// `<` seen from the other side.
std::string_view turned(std::string_view sign) {
  if (sign == "<") return ">";
  if (sign == ">") return "<";
  if (sign == "<=") return ">=";
  return sign == ">=" ? "<=" : sign;
}

bool is_marker_version(std::string_view text) {
  return !text.empty() && is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '.' || c == '*' || c == '+'; });
}

bool compares_as_text(std::string_view left, std::string_view sign, std::string_view right) {
  if (sign == "==" || sign == "===") return left == right;
  if (sign == "!=") return left != right;
  if (sign == "in") return right.find(left) != std::string_view::npos;
  if (sign == "not in") return right.find(left) == std::string_view::npos;
  if (sign == "<") return left < right;
  if (sign == ">") return left > right;
  if (sign == "<=") return left <= right;
  return sign == ">=" && left >= right;
}

/// `3.11` among `3.10, 3.11`.
bool is_listed(std::string_view version, std::string_view list) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(" ,"), list.size());
    const std::string_view one = list.substr(0, end);
    if (!one.empty() && is_same_version(version, one)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// Of a variable that is a version.
bool compares_as_version(std::string_view version, std::string_view sign, std::string_view text) {
  if (sign == "in") return is_listed(version, text);
  if (sign == "not in") return !is_listed(version, text);
  if (!is_marker_version(text)) return compares_as_text(version, sign, text);
  return version_satisfies(version, fmt::format("{}{}", sign, text));
}

/// What is read is evaluated too, where there is an environment.
class MarkerReader {
 public:
  MarkerReader(std::string_view text, const MarkerEnvironment* environment,
               const std::set<std::string>* extras)
      : text_(text), environment_(environment), extras_(extras) {
    if (environment != nullptr) python_minor_ = environment->python_minor();
  }

  std::optional<RequirementMistake> read() {
    holds_ = alternatives(0);
    skip_blanks();
    if (!mistake_ && at_ < text_.size()) fail(fmt::format("`{}` is too much", rest()));
    return mistake_;
  }
  bool holds() const { return holds_; }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool fail(std::string message) {
    if (!mistake_) mistake_ = RequirementMistake{at_, std::move(message)};
    return false;
  }
  static bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; }
  std::string_view word() const {
    const auto end = std::find_if_not(rest().begin(), rest().end(), is_word);
    return rest().substr(0, static_cast<std::size_t>(end - rest().begin()));
  }
  bool take_word(std::string_view wanted) {
    skip_blanks();
    if (word() != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  bool alternatives(int depth) {
    bool any = false;
    do {
      bool all = true;
      do {
        all = term(depth) && all;
      } while (!mistake_ && take_word("and"));
      any = any || all;
    } while (!mistake_ && take_word("or"));
    return any;
  }

  bool term(int depth) {
    skip_blanks();
    if (!rest().starts_with('(')) return comparison();
    if (depth >= kDeepestMarker) return fail("too many parentheses");
    ++at_;
    const bool holds = alternatives(depth + 1);
    skip_blanks();
    if (mistake_) return false;
    if (!rest().starts_with(')')) return fail("`)` is missing");
    ++at_;
    return holds;
  }

  bool comparison() {
    const Operand left = operand();
    if (mistake_) return false;
    const std::string_view sign = comparing();
    if (mistake_) return false;
    const Operand right = operand();
    return !mistake_ && environment_ != nullptr && compares(left, sign, right);
  }

  std::string_view comparing() {
    skip_blanks();
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](std::string_view one) { return rest().starts_with(one); });
    if (found != kOperators.end()) {
      at_ += found->size();
      return *found;
    }
    if (take_word("not")) {
      if (!take_word("in")) fail("`in` is missing after `not`");
      return "not in";
    }
    if (!take_word("in")) {
      fail(rest().starts_with('=') ? "`=` compares nothing; did you mean `==`?"
                                   : "a comparison is missing, as in `== 'linux'`");
    }
    return "in";
  }

  Operand operand() {
    skip_blanks();
    if (rest().starts_with('\'') || rest().starts_with('"')) {
      const std::size_t begin = at_ + 1;
      const std::size_t end = text_.find(text_[at_], begin);
      if (end == std::string_view::npos) {
        fail("a quote is not closed");
        return {};
      }
      at_ = end + 1;
      return {false, text_.substr(begin, end - begin)};
    }
    const std::string_view name = word();
    if (name.empty()) {
      fail("a marker compares a variable and a quoted text, as in `sys_platform == 'linux'`");
    } else if (std::find(kVariables.begin(), kVariables.end(), name) == kVariables.end()) {
      fail(fmt::format("markers have no variable `{}`{}; a text stands in quotes", name,
                       suggestion(name, kVariables)));
    } else {
      at_ += name.size();
    }
    return {true, name};
  }

  bool compares(const Operand& left, std::string_view sign, const Operand& right) const {
    const auto is_set = [](const Operand& one) {
      return one.is_variable && is_one_of(one.text, {"extras", "dependency_groups"});
    };
    if (is_set(left) || is_set(right)) return sign == "not in" || sign == "!=";
    const auto is_extra = [](const Operand& one) { return one.is_variable && one.text == "extra"; };
    if (is_extra(left) || is_extra(right)) {
      const bool asked = is_asked(is_extra(left) ? right.text : left.text);
      return sign == "==" ? asked : sign == "!=" && !asked;
    }
    const auto is_versioned = [](const Operand& one) {
      return one.is_variable && is_one_of(one.text, {"python_version", "python_full_version",
                                                     "implementation_version"});
    };
    if (is_versioned(left)) return compares_as_version(said(left), sign, said(right));
    const bool ordered = sign != "in" && sign != "not in";
    if (is_versioned(right) && ordered) {
      return compares_as_version(said(right), turned(sign), said(left));
    }
    return compares_as_text(said(left), sign, said(right));
  }

  std::string_view said(const Operand& one) const {
    return one.is_variable ? variable_value(one.text, *environment_, python_minor_) : one.text;
  }

  /// Extras are names: `Fast_Mode` is `fast-mode`.
  bool is_asked(std::string_view extra) const {
    return extras_ != nullptr &&
           std::any_of(extras_->begin(), extras_->end(), [&](const std::string& one) {
             return normalise_wheel_name(one) == normalise_wheel_name(extra);
           });
  }

  std::string_view text_;
  const MarkerEnvironment* environment_;
  const std::set<std::string>* extras_;
  std::string python_minor_;
  std::size_t at_ = 0;
  bool holds_ = false;
  std::optional<RequirementMistake> mistake_;
};

}  // namespace

std::optional<RequirementMistake> marker_mistake(std::string_view marker) {
  return MarkerReader(marker, nullptr, nullptr).read();
}

std::string MarkerEnvironment::python_minor() const { return version_prefix(python, 2); }

bool marker_holds(std::string_view marker, const MarkerEnvironment& environment,
                  const std::set<std::string>& extras) {
  if (marker.empty()) return true;
  MarkerReader reader(marker, &environment, &extras);
  return !reader.read() && reader.holds();
}

MarkerReach marker_reach(std::string_view marker, const std::set<std::string>& extras) {
  if (marker.empty()) return MarkerReach::all;
  bool holds = false;
  bool fails = false;
  for (const char* python : {"3.7.9", "3.8.18", "3.9.25", "3.10.19", "3.11.14", "3.12.12", "3.13.9",
                             "3.14.2", "3.15.0"}) {
    for (const char* machine : {"x86_64", "aarch64"}) {
      (marker_holds(marker, {python, machine}, extras) ? holds : fails) = true;
    }
  }
  if (!holds) return MarkerReach::none;
  return fails ? MarkerReach::some : MarkerReach::all;
}

}  // namespace mlenv
