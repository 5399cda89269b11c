#include "runner/after/after.hpp"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "runner/job/job_folders.hpp"
#include "runner/record/run_records.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

using State = AwaitedRun::State;

constexpr const char* kFirst = "20260301-120000-000001";
constexpr const char* kSecond = "20260301-120000-000002";

class AfterTest : public testing::Test {
 protected:
  const fs::path& store() const { return store_.path(); }
  fs::path begin(const std::string& id) const {
    fs::path folder = runs_folder(store()) / id;
    make_folders(folder);
    RunStart start;
    start.id = id;
    start.started = "2026-03-01T12:00:00.250Z";
    write_file(folder / "run.json", render_run_start(start));
    write_file(folder / "held", "");
    return folder;
  }
  static RunEnd end_with(std::uint64_t code) {
    RunEnd end;
    end.ended = "2026-03-01T12:00:01.000Z";
    end.exit_code = code;
    return end;
  }
  std::string why(const std::string& id, const RunEnd& end) const {
    write_file(begin(id) / "end.json", render_run_end(end));
    const AwaitedRun run = look_at_run(store(), id);
    EXPECT_EQ(run.state, State::never);
    return run.why;
  }

 private:
  TemporaryFolder store_{temporary_root()};
};

/// As on a machine without Slurm.
class WithoutPrograms {
 public:
  WithoutPrograms() { set("/nowhere"); }
  WithoutPrograms(const WithoutPrograms&) = delete;
  WithoutPrograms& operator=(const WithoutPrograms&) = delete;
  ~WithoutPrograms() { set(before_.c_str()); }

 private:
  static void set(const char* path) {
    ::setenv("PATH", path, 1);  // NOLINT(concurrency-mt-unsafe)
  }
  std::string before_ = ::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
};

TEST_F(AfterTest, OneThatEndedWithNothingWrongIsWell) {
  write_file(begin(kFirst) / "end.json", render_run_end(end_with(0)));
  EXPECT_EQ(look_at_run(store(), kFirst).state, State::well);
  EXPECT_EQ(not_over(store(), {kFirst}), std::vector<std::string>{});
  EXPECT_FALSE(wait_for_runs(store(), {kFirst}, {}));
  EXPECT_FALSE(wait_for_runs(store(), {}, {}));
}

TEST_F(AfterTest, OneThatEndedOtherwiseNeverIs) {
  EXPECT_EQ(why(kFirst, end_with(3)), "ended with status 3");
  RunEnd end = end_with(137);
  end.signal = SIGKILL;
  EXPECT_EQ(why(kFirst, end), "was ended by signal 9 (SIGKILL)");
  end = end_with(0);
  end.ended_by = "stop";
  EXPECT_EQ(why(kFirst, end), "was ended by `mlenv stop`");
  end.ended_by = "timeout";
  EXPECT_EQ(why(kFirst, end), "was ended by its time limit");
  end = end_with(125);
  end.failure = RunFailure{"after-failed", "run `a` ended with status 3"};
  EXPECT_EQ(why(kFirst, end), "could not be run: run `a` ended with status 3");
  EXPECT_EQ(code_of([&] { (void)not_over(store(), {kFirst}); }), "after-failed");
  EXPECT_EQ(code_of([&] { (void)wait_for_runs(store(), {kFirst}, {}); }), "after-failed");
}

TEST_F(AfterTest, OneThatNobodyKeepsNeverIs) {
  (void)begin(kFirst);
  EXPECT_NE(look_at_run(store(), kFirst).why.find("was lost"), std::string::npos);
  EXPECT_EQ(look_at_run(store(), kSecond).why, "has no record any more");
}

TEST_F(AfterTest, OneThatGoesOnIsWaitedFor) {
  const fs::path folder = begin(kFirst);
  const auto held = FileLock::attempt(folder / "held", FileLock::Mode::exclusive);
  ASSERT_TRUE(held);
  write_file(begin(kSecond) / "end.json", render_run_end(end_with(0)));
  EXPECT_EQ(not_over(store(), {kSecond, kFirst}), std::vector<std::string>{kFirst});
  std::string said;
  bool waits = false;
  WaitEvents events;
  events.notice = [&](const std::string& text) { said = text; };
  events.waiting = [&](bool now) { waits = now; };
  events.is_needless = [] { return true; };
  const std::optional<RunOutcome> told = wait_for_runs(store(), {kFirst}, events);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->exit.code, 128 + SIGTERM);
  EXPECT_EQ(told->ended_by, EndedBy::stop);
  EXPECT_TRUE(waits);
  EXPECT_EQ(said, "waits for the end of run `20260301-120000-000001`");
}

TEST_F(AfterTest, OneOfSlurmsIsKnownByItsRecordWhereSlurmCannotBeAsked) {
  const fs::path folder = job::jobs_folder(store()) / kSecond;
  make_folders(folder);
  write_file(folder / "slurm", "12\nname\n");
  const WithoutPrograms without;
  EXPECT_EQ(look_at_run(store(), kSecond).state, State::never);
  write_file(folder / "record", std::string(kFirst) + "\n");
  write_file(begin(kFirst) / "end.json", render_run_end(end_with(0)));
  EXPECT_EQ(look_at_run(store(), kSecond).state, State::well);
}

}  // namespace
}  // namespace mlenv
