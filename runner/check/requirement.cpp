#include "runner/check/requirement.hpp"

#include <array>

#include "base/text.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

/// Longest first, so that `<` is not taken for `<=`.
constexpr std::array<std::string_view, 6> kOperators = {"!=", "<=", ">=", "=", "<", ">"};

bool compares(std::strong_ordering order, std::string_view by) {
  if (by == "=") return std::is_eq(order);
  if (by == "!=") return std::is_neq(order);
  if (by == "<") return std::is_lt(order);
  if (by == "<=") return std::is_lteq(order);
  return by == ">" ? std::is_gt(order) : std::is_gteq(order);
}

bool is_version(std::string_view text) {
  return !text.empty() && is_digit(text.front()) &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

struct Condition {
  std::string_view property;
  std::string_view by;
  std::string_view value;
};

std::optional<Condition> parse_condition(std::string_view text) {
  const std::size_t end = text.find_first_of("<>=!");
  if (end == std::string_view::npos) return std::nullopt;
  for (const std::string_view by : kOperators) {
    if (!text.substr(end).starts_with(by)) continue;
    return Condition{text.substr(0, end), by, text.substr(end + by.size())};
  }
  return std::nullopt;
}

Met as_version(const std::string& found, const Condition& condition) {
  if (!is_version(condition.value)) return Met::not_understood;
  if (found.empty()) return Met::unknown;
  return compares(compare_versions(found, condition.value), condition.by) ? Met::yes : Met::no;
}

/// nullopt: it is about nothing that counts.
std::optional<Met> met(std::string_view text, const RequirementFacts& facts,
                       std::string_view brand) {
  const auto condition = parse_condition(text);
  if (!condition) return Met::not_understood;
  if (condition->property == "cuda") return as_version(facts.cuda, *condition);
  if (condition->property == "driver") return as_version(facts.driver, *condition);
  if (condition->property == "arch") return as_version(facts.arch, *condition);
  if (condition->property != "brand") return std::nullopt;
  if (brand.empty()) return Met::unknown;
  return compares(brand <=> condition->value, condition->by) ? Met::yes : Met::no;
}

/// Both must hold.
Met both(Met a, Met b) {
  for (const Met worst : {Met::not_understood, Met::no, Met::unknown}) {
    if (a == worst || b == worst) return worst;
  }
  return Met::yes;
}

Met either(Met a, Met b) {
  for (const Met best : {Met::not_understood, Met::yes, Met::unknown}) {
    if (a == best || b == best) return best;
  }
  return Met::no;
}

/// For a GPU of this brand; empty: of one that is not known.
Met met_by(std::string_view requirement, const RequirementFacts& facts, std::string_view brand) {
  std::optional<Met> all;
  for (const std::string_view term : split(requirement, ' ')) {
    std::optional<Met> whole;
    for (const std::string_view factor : split(term, ',')) {
      if (trim(factor).empty()) continue;
      const auto one = met(factor, facts, brand);
      if (one) whole = whole ? both(*whole, *one) : *one;
    }
    if (whole) all = all ? either(*all, *whole) : *whole;
  }
  return all.value_or(Met::yes);  // nothing is asked
}

}  // namespace

Met requirement_met(std::string_view requirement, const RequirementFacts& facts) {
  if (facts.brand.empty()) return met_by(requirement, facts, {});
  std::optional<Met> common;
  for (const std::string& brand : facts.brand) {
    const Met one = met_by(requirement, facts, brand);
    if (common && *common != one) return Met::unknown;
    common = one;
  }
  return common.value_or(Met::unknown);
}

std::set<std::string> brands_of(std::string_view product) {
  const auto says = [&](std::string_view word) {
    return product.find(word) != std::string_view::npos;
  };
  const bool rtx = says("RTX");
  if (says("GeForce")) {
    return rtx ? std::set<std::string>{"geforce", "geforcertx"} : std::set<std::string>{"geforce"};
  }
  if (says("TITAN")) {
    return rtx ? std::set<std::string>{"titan", "titanrtx"} : std::set<std::string>{"titan"};
  }
  if (says("Quadro")) {
    return rtx ? std::set<std::string>{"quadro", "quadrortx"} : std::set<std::string>{"quadro"};
  }
  if (rtx) return {"nvidia", "nvidiartx", "quadrortx"};
  if (says("Tesla")) return {"tesla"};
  if (says("NVIDIA ") && !says("T1000") && !says("T400") && !says("T600")) {
    return {"nvidia", "tesla"};
  }
  return {};
}

}  // namespace mlenv
