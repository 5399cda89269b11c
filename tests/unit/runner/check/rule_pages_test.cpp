#include "runner/check/rule_pages.hpp"

#include <gtest/gtest.h>

#include "runner/check/verdict.hpp"

namespace mlenv {
namespace {

TEST(RulePages, EveryRuleHasItsOwn) {
  for (const Rule& rule : rules()) {
    const std::string head = "# " + std::string(rule.id) + "\n";
    EXPECT_TRUE(rule_page(rule.id).starts_with(head)) << rule.id;
    EXPECT_NE(rule_page(rule.id).find(rule.source), std::string_view::npos) << rule.id;
  }
  EXPECT_EQ(rule_page("no-such-rule"), "");
}

}  // namespace
}  // namespace mlenv
