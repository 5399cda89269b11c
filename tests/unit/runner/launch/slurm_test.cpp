#include <gtest/gtest.h>

#include "runner/launch/slurm_array.hpp"
#include "runner/launch/slurm_job.hpp"
#include "runner/launch/slurm_script.hpp"
#include "runner/launch/slurm_steps.hpp"
#include "tests/support/child.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

TEST(SlurmScript, IsReadableAndSaysWhatTheJobNeeds) {
  Job job;
  job.nodes = {2, 4};
  job.ranks_per_node = 2;
  job.gpus_per_node = 4;
  job.deadline = std::chrono::hours{26};
  job.options.limits.cpus = 1.5;
  job.options.limits.memory_bytes = (std::uint64_t{3} << 30U) + 1;
  EXPECT_EQ(slurm_script(job, {"bert train",
                               "/shared/jobs/a b/out-100%",
                               {"--partition=gpu"},
                               {"/shared/mlenv-node", "lead", "/shared/jobs/it's"}}),
            "#!/bin/sh\n"
            "#SBATCH --job-name=bert-train\n"
            "#SBATCH --nodes=2-4\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --cpus-per-task=3\n"
            "#SBATCH --mem=6145M\n"
            "#SBATCH --gpus-per-node=4\n"
            "#SBATCH --no-kill\n"
            "#SBATCH --time=1-02:03:10\n"
            "#SBATCH --output=\"/shared/jobs/a b/out-100%%\"\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --signal=B:TERM@60\n"
            "#SBATCH --partition=gpu\n"
            "\n"
            "# The controller of the job: it starts an agent on every node by srun.\n"
            "exec /shared/mlenv-node lead '/shared/jobs/it'\\''s'\n");
}

TEST(SlurmScript, LeavesRanksTheirGraceAfterTheDeadlineAndAfterTheWarning) {
  Job job;
  job.deadline = std::chrono::hours{1};
  job.grace = std::chrono::minutes{5};
  EXPECT_EQ(slurm_warning(job), std::chrono::seconds{330});
  const std::string text = slurm_script(job, {"", "/out", {}, {"true"}});
  EXPECT_NE(text.find("--signal=B:TERM@330\n"), std::string::npos) << text;
  // Deadline, grace, warning, and a minute each for Slurm's early warnings and for the beginning.
  EXPECT_NE(text.find("--time=0-01:12:30\n"), std::string::npos) << text;
  job.grace = std::chrono::hours{100};
  EXPECT_EQ(slurm_warning(job), std::chrono::seconds{65'535});
  job.grace = std::chrono::milliseconds{1};
  EXPECT_EQ(slurm_warning(job), std::chrono::seconds{60});
}

TEST(SlurmScript, AsksForNothingThatTheJobDoesNot) {
  const std::string text = slurm_script({}, {"", "/out", {}, {"true"}});
  for (const char* word : {"--gpus", "--mem", "--cpus", "--no-kill", "--time"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << text;
  }
  EXPECT_NE(text.find("--job-name=mlenv\n"), std::string::npos) << text;
}

TEST(SlurmScript, OfAnArrayHasItsTasksAndTheirFiles) {
  const std::string text = slurm_script(
      {}, {"sweep", "/shared/jobs/5%", {}, {"true"}, array_words({1, 2, 3}, 2), ".%a/out"});
  EXPECT_NE(text.find("#SBATCH --array=1-3%2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#SBATCH --output=/shared/jobs/5%%.%a/out\n"), std::string::npos) << text;
}

TEST(SlurmArray, NamesItsTasksInAFewWords) {
  EXPECT_EQ(array_words({7}, std::nullopt), "7");
  EXPECT_EQ(array_words({2, 5, 6, 7, 9, 10}, std::nullopt), "2,5-7,9-10");
  EXPECT_EQ(array_words({1, 3}, 1), "1,3%1");
  EXPECT_EQ(array_task("123", 7), "123_7");
}

TEST(SlurmArray, ReadsTheQueue) {
  const ArrayQueue queue = parse_array_queue(
      "2|RUNNING|None|node[1-2]\n4|PENDING|JobArrayTaskLimit|\nN/A|RUNNING|None|node1\n\n");
  ASSERT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.at(2), (SlurmState{"RUNNING", "", "node[1-2]", 0, {}}));
  EXPECT_EQ(queue.at(4), (SlurmState{"PENDING", "JobArrayTaskLimit", "", 0, {}}));
  EXPECT_TRUE(parse_array_queue("").empty());
}

TEST(SlurmScript, WhatADirectiveCannotHoldIsRefused) {
  for (const char* path : {"/a\"b", "/a\nb", "/a\\b"}) {
    EXPECT_EQ(code_of([&] {
                (void)slurm_script({}, {"", path, {}, {"true"}});
              }),
              "bad-job")
        << path;
  }
}

TEST(ShellWord, IsWhatAShellReadsBack) {
  for (const std::string word :
       {"plain", "", "two words", "it's", "$HOME `id` \"x\" \\ * ~", "~", "a\nb"}) {
    EXPECT_EQ(test::output_of({"sh", "-c", "printf %s " + shell_word(word)}), word);
  }
}

TEST(SlurmState, IsReadAsScontrolWritesIt) {
  const SlurmState state = parse_scontrol(
      "JobId=7 JobName=x UserId=root(0) JobState=NODE_FAIL Reason=NodeDown Dependency=(null) "
      "Requeue=1 Restarts=2 BatchFlag=1 ExitCode=3:0 ReqNodeList=(null) ExcNodeList=(null) "
      "NodeList=node[1-3] BatchHost=node1 NumNodes=3\n");
  EXPECT_EQ(state, (SlurmState{"NODE_FAIL", "NodeDown", "node[1-3]", 2, {3, false}}));
  EXPECT_TRUE(state.is_over());
  EXPECT_EQ(state.status(), 3);
}

TEST(SlurmState, EndsWithTheScriptsStatusOrASignal) {
  const auto with = [](const std::string& text) { return parse_scontrol(text); };
  EXPECT_EQ(with("JobState=COMPLETED Reason=None ExitCode=0:0 NodeList=(null)").status(), 0);
  EXPECT_EQ(with("JobState=FAILED ExitCode=0:11").status(), 139);
  EXPECT_EQ(with("JobState=CANCELLED ExitCode=0:15").status(), 143);
  // No process has such a status: what a shell would see of it is 0.
  for (const char* const code :
       {"256:0", "512:0", "-1:0", "0:128", "99999999999:0", "0:99999999999"}) {
    EXPECT_EQ(with(std::string("JobState=COMPLETED ExitCode=") + code).status(), 1) << code;
  }
  EXPECT_EQ(with("JobState=TIMEOUT ExitCode=0:0").status(), 124);
  EXPECT_EQ(with("JobState=NODE_FAIL ExitCode=0:0").status(), 1);
  // Cancelled before it began: nothing of it ran that could have a status.
  EXPECT_EQ(with("JobState=CANCELLED ExitCode=0:0").status(), 143);
  EXPECT_EQ(with("JobState=CANCELLED ExitCode=0:0").status(SIGINT), 130);
  EXPECT_FALSE(with("JobState=RUNNING ExitCode=0:0").is_over());
  EXPECT_FALSE(with("JobState=COMPLETING ExitCode=0:0").is_over());
  EXPECT_FALSE(with("JobState=REQUEUED ExitCode=0:0").is_over());
  EXPECT_FALSE(with("").is_over());
  EXPECT_EQ(with("JobState=PENDING Reason=None ExitCode=0:0 NodeList=(null)").reason, "");
}

TEST(SlurmState, IsReadAsAccountsHaveIt) {
  EXPECT_EQ(parse_sacct("CANCELLED by 1000|0:15|node[1-2]\n"),
            (SlurmState{"CANCELLED", "", "node[1-2]", 0, {143, true}}));
  EXPECT_EQ(parse_sacct(""), std::nullopt);
}

TEST(SlurmPace, SlowsDownWhileNothingChanges) {
  using std::chrono::seconds;
  AskingPace pace;
  EXPECT_EQ(pace.wait(), seconds{1});
  pace.asked("PENDING");
  EXPECT_EQ(pace.wait(), seconds{1});
  for (int i = 0; i < 20; ++i) pace.asked("PENDING");
  EXPECT_EQ(pace.wait(), seconds{30});
  pace.asked("");
  EXPECT_EQ(pace.wait(), seconds{30});
  pace.asked("RUNNING");
  EXPECT_EQ(pace.wait(), seconds{1});
  pace.asked("");
  EXPECT_GT(pace.wait(), seconds{1});
  pace.hurry();
  EXPECT_EQ(pace.wait(), seconds{1});
}

TEST(SlurmSteps, AreUnbufferedOrNothingPassesBeforeALineEnds) {
  const std::vector<std::string> words = srun_words("/usr/bin/srun", "node2");
  EXPECT_NE(std::find(words.begin(), words.end(), "--unbuffered"), words.end());
  EXPECT_NE(std::find(words.begin(), words.end(), "--nodelist=node2"), words.end());
}

TEST(SlurmSteps, NeedAnAllocation) {
  if (!find_program("srun")) GTEST_SKIP() << "there is no srun";
  EXPECT_EQ(code_of([] { (void)slurm_steps({"", "/bin/true"}); }), "no-node");
}

TEST(SlurmScriptQueue, TellsJobsByTheirScripts) {
  const ScriptQueue queue = parse_script_queue(
      "12|PENDING|/s/jobs/20260301-120000-0fa4f1/job.sh\n"
      "13|RUNNING|/home/jo/train it|now.sh\n"
      "14|PENDING|/s/jobs/a/job.sh\n14|RUNNING|/s/jobs/a/job.sh\n"
      "nothing of it\n|\n");
  EXPECT_EQ(queue, (ScriptQueue{{"/s/jobs/20260301-120000-0fa4f1/job.sh", {"12", "PENDING"}},
                                {"/home/jo/train it|now.sh", {"13", "RUNNING"}},
                                {"/s/jobs/a/job.sh", {"14", "RUNNING"}}}));
  EXPECT_TRUE(parse_script_queue("").empty());
}

}  // namespace
}  // namespace mlenv::job
