#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runner/compare/figures.hpp"
#include "runner/compare/html.hpp"
#include "runner/compare/markdown.hpp"
#include "runner/compare/scripts.hpp"
#include "tests/support/error_code.hpp"
#include "tests/unit/runner/compare/some_comparison.hpp"

namespace mlenv::compare {
namespace {

TEST(CompareRender, FiguresHaveThreeDigitsAndAUnitThatSuits) {
  EXPECT_EQ(figure(0.0412, "s"), "41.2 ms");
  EXPECT_EQ(figure(0.99999, "s"), "1.00 s");
  EXPECT_EQ(figure(0, "s"), "0 s");
  EXPECT_EQ(figure(90, "s"), "1.50 min");
  EXPECT_EQ(figure(1.38e9, "bytes/s"), "1.38 GB/s");
  EXPECT_EQ(figure(512, "bytes"), "512 bytes");
  EXPECT_EQ(figure(3027.3, "events/s"), "3 027 events/s");
  EXPECT_EQ(figure(1004613.4, "operations/s"), "1 004 613 operations/s");
  EXPECT_EQ(figure(7, "processes"), "7 processes");
  EXPECT_EQ(figure(-2.5e6, "bytes"), "-2.50 MB");
}

TEST(CompareRender, WordsOfACell) {
  const Comparison comparison = some_comparison();
  const RowResult& row = comparison.rows[0];
  const CellWords container = words_of(comparison, row, row.sides[1]);
  EXPECT_EQ(container.value, "42.5 ms");
  EXPECT_EQ(container.interval, "40.0 ms to 45.0 ms");
  EXPECT_EQ(container.note, "10.00 times bare host");
  const CellWords gap = words_of(comparison, row, row.sides[2]);
  EXPECT_EQ(gap.value, "not measured");
  EXPECT_EQ(gap.note, "`vm` is no runtime");
  const RowResult& same = comparison.rows[1];
  EXPECT_EQ(words_of(comparison, same, same.sides[1]).note, "") << "no claim where they overlap";
}

TEST(CompareRender, EmulatedIsSaidOfEachFigure) {
  Comparison comparison = some_comparison();
  say_machine(comparison, "builtin", "tcg");
  for (const RowResult& row : comparison.rows) {
    EXPECT_TRUE(words_of(comparison, row, row.sides[1]).note.starts_with("emulated")) << row.id;
  }
  EXPECT_NE(remarks_of(comparison).at(0).find("emulated"), std::string::npos);
}

TEST(CompareRender, WhatIsNotKnownToBeRealIsSaid) {
  Comparison comparison = some_comparison();
  say_machine(comparison, "builtin", "unknown");
  const RowResult& row = comparison.rows[0];
  EXPECT_TRUE(words_of(comparison, row, row.sides[1]).note.starts_with("accelerator unknown"));
  EXPECT_EQ(common_mark(comparison, "builtin"), "accelerator unknown");
}

TEST(CompareRender, OtherDevicesAreRemarked) {
  Comparison comparison = some_comparison();
  comparison.rows[1].sides[0].device = "cuda";
  comparison.rows[1].sides[1].device = "cpu";
  conclude(comparison);
  EXPECT_NE(remarks_of(comparison).at(0).find("not held against each other"), std::string::npos);
}

TEST(CompareRender, UnequalSidesAreRemarked) {
  Comparison comparison = some_comparison();
  comparison.sides[1].options = {"--cpus=0.3"};
  EXPECT_EQ(remarks_of(comparison).at(0),
            "not equal: built-in container had --cpus=0.3 of its own");
}

TEST(CompareRender, ANoisyMachineIsRemarked) {
  Comparison comparison = some_comparison();
  comparison.sessions[0].noise.busy_before = 0.05;
  comparison.sessions[0].noise.steal = 0.01;
  EXPECT_TRUE(remarks_of(comparison).empty());
  comparison.sessions[0].noise.busy_before = 0.5;
  comparison.sessions[0].noise.steal = 0.1;
  EXPECT_EQ(remarks_of(comparison).size(), 2U);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(CompareRender, MarkdownHasATableAndKeepsStrangeWordsOutOfIt) {
  Comparison comparison = some_comparison();
  comparison.terms.image_name = "a|b<script>";
  const std::string text = joined(markdown(comparison));
  EXPECT_NE(text.find("|  | bare host | built-in container | virtual machine |"),
            std::string::npos);
  EXPECT_NE(text.find("a\\|b\\<script\\>"), std::string::npos);
  EXPECT_NE(text.find("42.5 ms (40.0 ms to 45.0 ms): 10.00 times bare host"), std::string::npos);
  EXPECT_NE(text.find("not measured here"), std::string::npos);
}

TEST(CompareRender, UnequalMemoryIsTold) {
  Comparison comparison = some_comparison();
  comparison.sides[2].why.reset();
  comparison.rows[0].sides[2] = cell_of("vm", {1, 1, 1, 1, 1, 1});
  say_machine(comparison, "vm", "kvm");
  const auto told = [&] {
    const std::vector<std::string> remarks = remarks_of(comparison);
    return std::count(remarks.begin(), remarks.end(),
                      "not equal: virtual machine had 4.00 GB of memory, the other sides up to all "
                      "8.00 GB of this host; --memory gives containers and the virtual machine the "
                      "same");
  };
  EXPECT_EQ(told(), 0) << "nothing is known";
  comparison.sessions[0].machines[0].memory_bytes = 4000000000;
  EXPECT_EQ(told(), 1);
  comparison.terms.memory = "4g";
  EXPECT_EQ(told(), 0);
}

TEST(CompareRender, ThePageIsOneFileAndHoldsNothingStrange) {
  Comparison comparison = some_comparison();
  comparison.terms.image_name = "</title><script>alert(1)</script>";
  comparison.sides[1].title = "</script><b>'\"&";
  const std::string page = html_page(comparison);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  for (const char* const outside : {"<script src", "<link", "@import", "<img", "<iframe"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  EXPECT_NE(page.find("<article id=\"start.user\">"), std::string::npos);
  EXPECT_NE(page.find("<td>not measured</td><td></td><td>`vm` is no runtime</td>"),
            std::string::npos);
  EXPECT_EQ(page.find("id=\"figures\"") != std::string::npos, !chart_library().empty());
}

/// Texts of a JSON value, but for its schema.
void each_text(nlohmann::json& in, const std::function<void(nlohmann::json&)>& take) {
  for (auto& [name, value] : in.items()) {
    if (value.is_string() && name != "schema") take(value);
    if (value.is_structured()) each_text(value, take);
  }
}

TEST(CompareRender, NoTextOfAFileGetsOutOfItsPlaceOnThePage) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>'\"";
  Comparison comparison = some_comparison();
  comparison.terms.command = {"a"};
  comparison.sides[1].options = {"--cpus=1"};
  say_machine(comparison, "builtin", "tcg");
  comparison.sessions[0].machines[0].about = "q35";
  comparison.sessions[0].noise.governor = "powersave";
  comparison.sessions[0].noise.turbo = "on";
  comparison.rows[0].sides[1].note = "a note";
  comparison.rows[1].sides[1].device = "cpu";
  comparison.rows[1].sides[0].device = "cuda";
  nlohmann::json all = nlohmann::json::parse(render_comparison(comparison));
  int planted = 0;
  each_text(all, [&](nlohmann::json& text) {
    const std::string before = text.get<std::string>();
    text = before + hostile;
    const std::string page = html_page(parse_comparison(all.dump(), "x"));
    EXPECT_EQ(page.find("<img src=x"), std::string::npos) << before;
    text = before;
    ++planted;
  });
  EXPECT_GT(planted, 40);
}

TEST(CompareRender, EveryRowOfTheProbesAndOfTheClassicTableIsThere) {
  for (const ProbeSpec& probe : probe_specs()) {
    for (const std::string_view row : probe.rows) {
      ASSERT_NE(find_spec(row), nullptr) << row;
      EXPECT_FALSE(find_spec(row)->computed) << row;
    }
  }
  for (const ClassicRow& one : classic_rows()) EXPECT_NE(find_spec(one.row), nullptr) << one.row;
}

TEST(CompareRender, RowsAreAskedForByIdOrByTheirFirstPart) {
  EXPECT_TRUE(is_asked("cpu.all", {}));
  EXPECT_TRUE(is_asked("cpu.all", {"cpu"}));
  EXPECT_TRUE(is_asked("cpu.all", {"start", "cpu.all"}));
  EXPECT_FALSE(is_asked("cpu.all", {"cpu.integer"}));
  EXPECT_FALSE(is_asked("cpu.all", {"c"}));
  EXPECT_EQ(code_of([] { check_rows({"cpu", "stop"}); }), "none");
  EXPECT_EQ(code_of([] { check_rows({"cpu", "start.usre"}); }), "usage");
}

}  // namespace
}  // namespace mlenv::compare
