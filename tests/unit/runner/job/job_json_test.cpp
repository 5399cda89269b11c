#include "runner/job/job_json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runner/record/run_log.hpp"

namespace mlenv::job {
namespace {

TEST(JobJson, ALineSaysWhoseItIs) {
  const std::string line =
      render_log_line({"2026-03-01T12:00:00.250Z", LogStream::err, false, "x\xff"});
  const nlohmann::json record =
      nlohmann::json::parse(log_line_json(1, 7, line.substr(0, line.find('\n'))));
  EXPECT_EQ(record.at("stream"), "stderr");
  EXPECT_EQ(record.at("attempt"), 1);
  EXPECT_EQ(record.at("rank"), 7);
  EXPECT_EQ(record.at("complete"), false);
  EXPECT_EQ(log_line_json(1, 7, "no line"), "");
}

TEST(JobJson, ARemarkAboutTheJobIsOfNoRank) {
  const std::string line =
      render_log_line({"2026-03-01T12:00:00.250Z", LogStream::remark, true, "restart 1 of 3"});
  const nlohmann::json record =
      nlohmann::json::parse(log_line_json({}, {}, line.substr(0, line.find('\n'))));
  EXPECT_EQ(record.at("stream"), "mlenv");
  EXPECT_EQ(record.at("text"), "restart 1 of 3");
  EXPECT_FALSE(record.contains("attempt"));
  EXPECT_FALSE(record.contains("rank"));
}

JobOutcome with_failure(FirstFailure failure) {
  JobOutcome outcome;
  outcome.exit_code = 125;
  AttemptResult attempt;
  attempt.number = 2;
  attempt.ranks.resize(1);
  attempt.failure = std::move(failure);
  outcome.attempts = {{}, {}, attempt};
  return outcome;
}

TEST(JobJson, TheEndSaysWhatFailedFirst) {
  const std::string node = job_end_json(
      "20260301-120000-000001", with_failure({FirstFailure::What::node, 0, "n2", "silent"}));
  EXPECT_TRUE(is_job_end(node));
  const nlohmann::json end = nlohmann::json::parse(node);
  EXPECT_EQ(end.at("exit_code"), 125);
  EXPECT_EQ(end.at("attempts"), 3);
  EXPECT_EQ(end.at("failure"),
            (nlohmann::json{{"attempt", 2}, {"rank", nullptr}, {"node", "n2"}, {"why", "silent"}}));
  const nlohmann::json rank = nlohmann::json::parse(
      job_end_json("", with_failure({FirstFailure::What::rank, 0, "n1", ""})));
  EXPECT_EQ(rank.at("failure").at("rank"), 0);
  EXPECT_EQ(rank.at("failure").at("why"), "was lost");
  EXPECT_TRUE(rank.at("id").is_null());
}

TEST(JobJson, AFailureOfMlenvItselfHasAnEndToo) {
  const nlohmann::json end =
      nlohmann::json::parse(job_end_json("20260301-120000-000001", std::uint64_t{2}));
  EXPECT_EQ(end.at("id"), "20260301-120000-000001");
  EXPECT_EQ(end.at("exit_code"), 125);
  EXPECT_EQ(end.at("attempts"), 2);
  EXPECT_TRUE(end.at("failure").is_null());
}

TEST(JobJson, ThatOfAnotherDriverHasOurStatus) {
  const std::string told = job_end_json("20260301-120000-000001", with_failure({}));
  const nlohmann::json end = nlohmann::json::parse(job_end_json("other", 143, told));
  EXPECT_EQ(end.at("id"), "20260301-120000-000001");
  EXPECT_EQ(end.at("attempts"), 3);
  EXPECT_EQ(end.at("exit_code"), 143);
  const nlohmann::json none = nlohmann::json::parse(job_end_json("", 1, ""));
  EXPECT_TRUE(none.at("id").is_null());
  EXPECT_EQ(none.at("attempts"), 0);
  EXPECT_FALSE(is_job_end("{\"text\":\"mlenv.job-end/1\"}"));
  EXPECT_FALSE(is_job_end("mlenv.job-end/1"));
}

}  // namespace
}  // namespace mlenv::job
