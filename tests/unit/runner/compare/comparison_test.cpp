#include "runner/compare/comparison.hpp"

#include <gtest/gtest.h>

#include "runner/compare/cost.hpp"
#include "runner/compare/figures.hpp"
#include "runner/compare/merge.hpp"
#include "runner/compare/records.hpp"
#include "runner/compare/side.hpp"
#include "runner/compare/sizes.hpp"
#include "tests/support/error_code.hpp"
#include "tests/unit/runner/compare/some_comparison.hpp"

namespace mlenv::compare {
namespace {

const Cell& cell(const Comparison& in, std::string_view row, std::string_view side) {
  return *find_cell(*find_row(in, row), side);
}

TEST(Comparison, ClaimsOnlyWhereIntervalsAreApart) {
  const Comparison comparison = some_comparison();
  const Cell& start = cell(comparison, "start.user", "builtin");
  EXPECT_EQ(start.relation, "worse");
  EXPECT_NEAR(*start.ratio, 10, 0.1);
  const Cell& step = cell(comparison, "train.step", "builtin");
  EXPECT_EQ(step.relation, "overlap");
  EXPECT_FALSE(step.ratio.has_value());
  EXPECT_FALSE(cell(comparison, "train.step", "bare").relation.has_value());
  EXPECT_FALSE(cell(comparison, "train.step", "vm").summary.has_value());
}

TEST(Comparison, SurvivesItsText) {
  const Comparison comparison = some_comparison();
  EXPECT_EQ(parse_comparison(render_comparison(comparison), "x"), comparison);
}

TEST(Comparison, ARerunIsASessionOfItsOwnAndShowsDrift) {
  Comparison later = some_comparison();
  later.rows[0].sides[1] = cell_of("builtin", {0.08, 0.081, 0.082, 0.083, 0.084, 0.085});
  const Comparison both = merged(some_comparison(), later);
  EXPECT_EQ(both.sessions.size(), 2U);
  const Cell& start = cell(both, "start.user", "builtin");
  EXPECT_EQ(start.samples.size(), 12U);
  EXPECT_EQ(start.summary->count, 6U) << "the newest session's alone";
  ASSERT_TRUE(start.drift.has_value());
  EXPECT_NEAR(start.drift->median_before, 0.0425, 1e-9);
  EXPECT_NEAR(start.drift->median_now, 0.0825, 1e-9);
  EXPECT_FALSE(cell(both, "start.user", "bare").drift.has_value());
}

TEST(Comparison, SidesOfDifferentSessionsAreNotHeldAgainstEachOther) {
  Comparison later = some_comparison();
  for (RowResult& row : later.rows) row.sides = {row.sides[1]};
  later.sides = {later.sides[1]};
  const Comparison both = merged(some_comparison(), later);
  EXPECT_EQ(both.sides.size(), 3U);
  EXPECT_FALSE(cell(both, "start.user", "builtin").relation.has_value());
}

TEST(Comparison, SidesOfOneRerunAreHeldAgainstEachOther) {
  Comparison later = some_comparison();
  later.sides[2].why.reset();
  later.rows[0].sides = {later.rows[0].sides[1], cell_of("vm", {4, 4.1, 4.2, 4.3, 4.4, 4.5})};
  later.rows.resize(1);
  later.sides.erase(later.sides.begin());
  const Comparison both = merged(some_comparison(), later);
  const RowResult& row = *find_row(both, "start.user");
  const Cell& machine = cell(both, "start.user", "vm");
  ASSERT_NE(base_of(row, machine), nullptr);
  EXPECT_EQ(base_of(row, machine)->side, "builtin");
  EXPECT_EQ(machine.relation, "worse");
  EXPECT_NEAR(*machine.ratio, 100, 1);
  EXPECT_FALSE(cell(both, "start.user", "builtin").relation.has_value()) << "its session's first";
  EXPECT_EQ(base_of(row, cell(both, "start.user", "bare")), nullptr);
  EXPECT_EQ(claim_of(both, row, machine), "100 times built-in container");
  EXPECT_EQ(other_base(both, row, machine), "built-in container");
  const Comparison first = some_comparison();
  EXPECT_EQ(other_base(first, *find_row(first, "start.user"), cell(first, "start.user", "builtin")),
            "");
}

TEST(Comparison, WhatIsNotMeasuredAgainStays) {
  Comparison later = some_comparison();
  later.rows[0].sides[1] = gap_of("builtin", "no time left");
  const Comparison both = merged(some_comparison(), later);
  EXPECT_EQ(cell(both, "start.user", "builtin").summary->count, 6U);
}

TEST(Comparison, ASideThatIsGoneDoesNotReplaceWhatWasMeasured) {
  Comparison later = some_comparison();
  later.sides[1].why = "it is not there any more";
  for (RowResult& row : later.rows) row.sides[1] = gap_of("builtin", "it is not there any more");
  const Comparison both = merged(some_comparison(), later);
  EXPECT_FALSE(find_side(both, "builtin")->why.has_value());
}

TEST(Comparison, EachFigureKeepsTheMachineOfItsSession) {
  Comparison first = some_comparison();
  say_machine(first, "builtin", "tcg");
  Comparison later = some_comparison();
  say_machine(later, "builtin", "kvm");
  later.rows[1].sides[1] = gap_of("builtin", "no time left");
  const Comparison both = merged(first, later);
  EXPECT_EQ(machine_of(both, cell(both, "start.user", "builtin"))->accelerator, "kvm");
  EXPECT_EQ(machine_of(both, cell(both, "train.step", "builtin"))->accelerator, "tcg");
}

TEST(Comparison, OtherDevicesAreNotHeldAgainstEachOther) {
  Comparison comparison = some_comparison();
  comparison.rows[0].sides[0].device = "cuda";
  comparison.rows[0].sides[1].device = "cpu";
  conclude(comparison);
  EXPECT_FALSE(cell(comparison, "start.user", "builtin").relation.has_value());
  EXPECT_FALSE(cell(comparison, "start.user", "builtin").ratio.has_value());
}

TEST(Comparison, SecretsAreNotInItsWords) {
  EXPECT_EQ(shown_words({"curl", "--token", "abc", "--env=HF_TOKEN=abc", "A=1"}),
            (std::vector<std::string>{"curl", "--token", "***", "--env=HF_TOKEN=***", "A=1"}));
  EXPECT_NE(digest_of_words({"a", "b"}), digest_of_words({"ab"}));
  EXPECT_EQ(shown_words({"\xff"}).front().find('\xff'), std::string::npos);
}

TEST(Comparison, SamplesOfNoSessionAreRefused) {
  Comparison comparison = some_comparison();
  comparison.rows[0].sides[0].samples[0].session = 7;
  const std::string text = render_comparison(comparison);
  EXPECT_EQ(code_of([&] { (void)parse_comparison(text, "x"); }), "bad-facts");
}

TEST(Comparison, OnlyLikeIsPutTogether) {
  const Comparison now = some_comparison();
  EXPECT_EQ(apart(now, now), "");
  const auto after = [&](const auto& change) {
    Comparison other = some_comparison();
    change(other);
    return apart(other, now);
  };
  EXPECT_NE(after([](Comparison& it) { it.terms.image = "sha256:9"; }), "");
  EXPECT_NE(after([](Comparison& it) { it.terms.command = {"x"}; }), "");
  EXPECT_NE(after([](Comparison& it) { it.terms.command_digest = "sha256:9"; }), "");
  EXPECT_NE(after([](Comparison& it) { it.terms.folder = "/elsewhere"; }), "");
  EXPECT_NE(after([](Comparison& it) { it.terms.previous = "sha256:9"; }), "");
  EXPECT_NE(after([](Comparison& it) { it.sides[1].options_digest = "sha256:9"; }), "");
  EXPECT_NE(after([](Comparison& it) { it.terms.processors = 1; }), "");
  EXPECT_NE(after([](Comparison& it) { it.terms.tools = "sha256:9"; }), "");
  EXPECT_NE(after([](Comparison& it) { it.host.name = "other"; }), "");
  EXPECT_NE(after([](Comparison& it) { it.sides[1].options = {"--cpus=1"}; }), "");
  EXPECT_EQ(after([](Comparison& it) { it.terms.tools.reset(); }), "");
  EXPECT_EQ(after([](Comparison& it) { it.terms.image_name = "another name"; }), "");
}

TEST(Comparison, CostIsPriceTimesTime) {
  Comparison comparison = some_comparison();
  comparison.sides[1].price_per_hour = 3.6;
  add_costs(comparison, 900);
  // A step of 4.5 s at 0.001 EUR a second.
  EXPECT_NEAR(cell(comparison, "cost.step", "builtin").samples[0].value, 4500, 1e-6);
  EXPECT_NEAR(cell(comparison, "cost.own-steps", "builtin").samples[0].value, 200000, 1);
  EXPECT_EQ(cell(comparison, "cost.step", "bare").why,
            "it has no price: --price bare=EUR_PER_HOUR");
  EXPECT_EQ(find_row(comparison, "cost.command"), nullptr) << "no command was measured";
  const std::size_t rows = comparison.rows.size();
  add_costs(comparison, 900);
  EXPECT_EQ(comparison.rows.size(), rows) << "once";
}

TEST(Comparison, PricesAreRead) {
  EXPECT_EQ(parse_prices({"vm=0.5", "bare=2"}),
            (std::map<std::string, double>{{"vm", 0.5}, {"bare", 2}}));
  for (const char* const bad :
       {"vm", "vm=", "vm=x", "vm=-1", "vm=0", "moon=1", "vm=1x", "vm=inf"}) {
    EXPECT_EQ(code_of([&] { (void)parse_prices({bad}); }), "usage") << bad;
  }
}

TEST(Comparison, RunsOfASide) {
  SideTerms terms;
  terms.program = "/mlenv";
  terms.image = "sha256:1";
  terms.tools = "sha256:2";
  terms.work = "/work";
  terms.label = "mlenv.compare=x";
  const Wanted wanted{Which::tools, {"fio", "--x"}, true, false};
  EXPECT_EQ(run_words(*find_side_spec("docker"), terms, {"--cpus=1"}, wanted),
            (std::vector<std::string>{"/mlenv", "-q", "--json", "run", "--runtime", "docker",
                                      "--no-check", "--label", "mlenv.compare=x", "--no-project",
                                      "--cpus=1", "-v", "/work:/mlenv-compare", "-w",
                                      "/mlenv-compare", "sha256:2", "--", "fio", "--x"}));
  terms.cpuset = "0,2";
  terms.processors = 2;
  terms.memory = "2g";
  const Wanted project{Which::image, {"true"}, false, true};
  EXPECT_EQ(run_words(*find_side_spec("vm"), terms, {}, project),
            (std::vector<std::string>{"/mlenv", "-q", "--json", "run", "--runtime", "vm",
                                      "--no-check", "--label", "mlenv.compare=x", "--cpus", "2",
                                      "--memory", "2g", "sha256:1", "--", "true"}));
}

TEST(Comparison, TheMachineOfARecord) {
  VmUse use;
  use.accelerator = "kvm";
  use.machine = "q35";
  use.kernel = "6.1.0";
  EXPECT_EQ(machine_of(use).accelerator, "kvm");
  EXPECT_FALSE(machine_of(use).memory_bytes.has_value());
  use.memory_bytes = 512;
  EXPECT_EQ(machine_of(use).memory_bytes, 512U);
  EXPECT_EQ(machine_of(use).about, "q35, kvm, kernel 6.1.0");
  use.accelerator = "tcg";
  use.why = "it hangs";
  EXPECT_EQ(machine_of(use).accelerator, "tcg");
  EXPECT_EQ(machine_of(use).about, "q35, tcg, kernel 6.1.0; no KVM: it hangs");
  const TemporaryFolder none(fs::temp_directory_path());
  EXPECT_EQ(newest_machine(RunRecords(none.path()), "x").accelerator, "unknown");
}

Layer titled_layer(const char* title, const char* text, std::uint64_t size) {
  Layer one{{"", Digest::of(text), size}, Digest::of(text), 0, title};
  return one;
}

TEST(Comparison, LayersThatTravel) {
  Image image = compose_image({}, {}, 0);
  image.layers = {titled_layer("debian:bookworm", "a", 100), titled_layer("numpy 2", "b", 20)};
  Image before = image;
  before.layers[0] = titled_layer("debian:bookworm", "c", 90);
  EXPECT_EQ(bytes_of(layers_of_base(image)), 100U);
  EXPECT_EQ(bytes_of(layers_beyond(image, before)), 100U);
  EXPECT_EQ(bytes_of(layers_beyond(image, image)), 0U);
  image.layers.erase(image.layers.begin());
  EXPECT_TRUE(layers_of_base(image).empty());
}

}  // namespace
}  // namespace mlenv::compare
