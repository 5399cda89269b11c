#include "runner/job/plan_file.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv::job {
namespace {

PlanFile whole_plan() {
  PlanFile file;
  file.version = "1.2";
  file.engine = "slurm";
  file.store = "/shared/store";
  file.json = true;
  DrivePlan& plan = file.plan;
  plan.image_digest = "sha256:abc";
  plan.pull_from = {"r.example/team/x", true, "/usr/bin/mlenv"};
  plan.code_digest = "sha256:def";
  plan.storage = {{"scratch", "/mnt/scratch/bert", true}, {"data", "/mnt/data", false}};
  plan.data = {{"corpus", "sha256:123", "/here/corpus", "/data/corpus", true, "sha256:456", 7, 8}};
  plan.gpus = "all";
  plan.most_log_bytes = 77;
  plan.meeting = std::chrono::milliseconds{123};
  plan.run.argv = {"python", "train.py"};
  plan.run.env = {"A=b"};
  plan.run.options.limits.memory_bytes = 1024;
  plan.start.image.name = "train";
  Job& job = plan.job;
  job.name = "night";
  job.nodes = {2, 4};
  job.ranks_per_node = 3;
  job.gpus_per_node = 8;
  job.strategy = Strategy::parameter_server;
  job.framework = Framework::tensorflow;
  job.roles = {true, 2, true, true};
  job.rescale_interval = std::chrono::milliseconds{7000};
  job.interface = "eth0";
  job.restarts = 5;
  job.deadline = std::chrono::milliseconds{99000};
  job.grace = std::chrono::milliseconds{3000};
  job.checkpoints = Mount{"/shared/c", "/checkpoints", false};
  return file;
}

TEST(PlanFile, ComesBackAsItWas) {
  const std::string bytes = render_plan_file(whole_plan());
  const PlanFile back = parse_plan_file(bytes, "job", "1.2");
  EXPECT_EQ(back.engine, "slurm");
  EXPECT_EQ(back.store, "/shared/store");
  EXPECT_TRUE(back.json);
  const DrivePlan& plan = back.plan;
  EXPECT_EQ(plan.image_digest, "sha256:abc");
  EXPECT_EQ(plan.pull_from, whole_plan().plan.pull_from);
  EXPECT_EQ(plan.code_digest, "sha256:def");
  EXPECT_EQ(plan.data, whole_plan().plan.data);
  EXPECT_EQ(plan.storage, whole_plan().plan.storage);
  EXPECT_EQ(plan.gpus, "all");
  EXPECT_EQ(plan.most_log_bytes, 77U);
  EXPECT_EQ(plan.meeting.count(), 123);
  EXPECT_EQ(plan.run.argv, whole_plan().plan.run.argv);
  EXPECT_EQ(plan.run.env, whole_plan().plan.run.env);
  EXPECT_EQ(plan.run.options, whole_plan().plan.run.options);
  EXPECT_EQ(plan.start, whole_plan().plan.start);
  EXPECT_EQ(plan.job.nodes, (NodeCount{2, 4}));
  EXPECT_EQ(plan.job.rescale_interval.count(), 7000);
  EXPECT_EQ(plan.job.roles, (ServerRoles{true, 2, true, true}));
  EXPECT_EQ(plan.job.framework, Framework::tensorflow);
  EXPECT_EQ(plan.job.deadline, whole_plan().plan.job.deadline);
  EXPECT_EQ(plan.job.checkpoints->target, "/checkpoints");
  // All of it, written again.
  EXPECT_EQ(render_plan_file({"1.2", back.engine, back.store, true, plan}), bytes);
}

TEST(PlanFile, OfAnotherVersionOrNoneIsRefused) {
  const auto code = [](const std::string& bytes) {
    try {
      (void)parse_plan_file(bytes, "job", "1.3");
    } catch (const Error& error) {
      return error.code();
    }
    return std::string("none");
  };
  EXPECT_EQ(code(render_plan_file(whole_plan())), "bad-job");
  EXPECT_EQ(code("something else"), "bad-job");
  EXPECT_EQ(code(""), "bad-job");
}

}  // namespace
}  // namespace mlenv::job
