#include "runner/job/variations.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

JobVariation numbered_variation(std::uint64_t number) {
  JobVariation one;
  one.recorded = {
      "20260301-120000-00000a", number,    3, {{"lr", "0.1"}, {"HF_TOKEN", std::nullopt}},
      "/results/lr=0.1",        "/results"};
  one.argv = {"train", "--token=\xFFsecret"};
  one.recorded_argv = {"train", "--token=***"};
  one.env = {"lr=0.1", "HF_TOKEN=\xFFsecret"};
  return one;
}

TEST(JobVariation, IsFoundByItsNumber) {
  const std::string bytes = render_variations({numbered_variation(2), numbered_variation(3)});
  EXPECT_EQ(parse_variation(bytes, 3, "file"), numbered_variation(3));
  EXPECT_EQ(parse_variation(bytes, 2, "file"), numbered_variation(2));
  EXPECT_EQ(code_of([&] { (void)parse_variation(bytes, 1, "file"); }), "bad-job");
  EXPECT_EQ(code_of([&] { (void)parse_variation("{", 1, "file"); }), "bad-job");
}

TEST(JobVariation, ItsPlanHasWhatTheOthersHaveNot) {
  DrivePlan shared;
  shared.job.name = "sweep";
  shared.run.argv = {"train", "--token={HF_TOKEN}"};
  shared.run.env = {"A=1"};
  shared.start.env = {{"A", "1"}};
  const DrivePlan plan = plan_of(shared, numbered_variation(2));
  EXPECT_EQ(plan.job.name, "sweep-2");
  EXPECT_EQ(plan.run.argv, numbered_variation(2).argv);
  EXPECT_EQ(plan.run.env, (std::vector<std::string>{"A=1", "lr=0.1", "HF_TOKEN=\xFFsecret"}));
  ASSERT_EQ(plan.run.mounts.size(), 1U);
  EXPECT_EQ(plan.run.mounts[0].source, "/results/lr=0.1");
  EXPECT_EQ(plan.run.mounts[0].target, "/output");
  // Of the ranks: no secret, and they are no variations of their own.
  EXPECT_EQ(plan.start.argv, numbered_variation(2).recorded_argv);
  EXPECT_FALSE(plan.start.variation);
  ASSERT_EQ(plan.start.env.size(), 3U);
  EXPECT_FALSE(plan.start.env[2].value);
}

TEST(JobVariation, ItsRecordNamesIt) {
  RunStart start;
  start.name = "sweep";
  start = variation_start(start, numbered_variation(2));
  EXPECT_EQ(start.name, "sweep-2");
  EXPECT_EQ(start.variation, numbered_variation(2).recorded);
  EXPECT_EQ(start.mounts.at(0).target, "/output");
}

}  // namespace
}  // namespace mlenv::job
