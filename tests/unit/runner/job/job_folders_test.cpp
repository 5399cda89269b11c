#include "runner/job/job_folders.hpp"

#include <gtest/gtest.h>

#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

class JobFoldersTest : public testing::Test {
 protected:
  const fs::path& store() const { return store_.path(); }
  /// A job with the record of that id; empty: it has none yet.
  fs::path job(const std::string& name, const std::string& record) const {
    fs::path folder = jobs_folder(store()) / name;
    make_folders(folder);
    if (!record.empty()) write_file(folder / "record", record + "\n");
    return folder;
  }
  /// Empty: without an end.
  void record(const std::string& id, const std::string& ended) const {
    const fs::path folder = runs_folder(store()) / id;
    make_folders(folder);
    RunStart start;
    start.id = id;
    start.started = "2026-03-01T12:00:00.250Z";
    write_file(folder / "run.json", render_run_start(start));
    write_file(folder / "held", "");
    if (ended.empty()) return;
    RunEnd end;
    end.ended = ended;
    write_file(folder / "end.json", render_run_end(end));
  }

 private:
  TemporaryFolder store_{temporary_root()};
};

TEST_F(JobFoldersTest, OnesThatEndedLongAgoGo) {
  record("20260301-120000-000001", "2026-03-01T13:00:00.000Z");
  record("20260301-120000-000002", "2026-03-09T13:00:00.000Z");
  record("20260301-120000-000003", "");
  const fs::path old = job("20260301-120000-0000aa", "20260301-120000-000001");
  const fs::path young = job("20260301-120000-0000ab", "20260301-120000-000002");
  const fs::path open = job("20260301-120000-0000ac", "20260301-120000-000003");
  const fs::path waiting = job("20260301-120000-0000ad", "");
  const fs::path gone = job("20260301-120000-0000ae", "20260301-120000-000004");
  sweep_job_folders(store(), *parse_utc("2026-03-10T12:00:00.000Z"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(open));
  EXPECT_TRUE(fs::exists(waiting));
  EXPECT_FALSE(fs::exists(gone));
}

TEST_F(JobFoldersTest, AnArrayGoesWithTheLastOfItsJobs) {
  record("20260301-120000-000001", "2026-03-01T13:00:00.000Z");
  const fs::path array = job("20260301-120000-0000af", "");
  write_file(array / kVariationsFile, "");
  const fs::path old = job("20260301-120000-0000af.1", "20260301-120000-000001");
  const fs::path waiting = job("20260301-120000-0000af.12", "");
  EXPECT_EQ(task_folder(array, 12), waiting);
  const auto late = *parse_utc("2026-03-10T12:00:00.000Z");
  sweep_job_folders(store(), late);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(waiting));
  EXPECT_TRUE(fs::exists(array));
  write_file(waiting / "record", "20260301-120000-000001\n");
  sweep_job_folders(store(), late);
  EXPECT_FALSE(fs::exists(waiting));
  EXPECT_FALSE(fs::exists(array));
}

TEST_F(JobFoldersTest, AnArrayStaysWhereARecordOfItsJobsCannotBeRead) {
  record("20260301-120000-000001", "2026-03-01T13:00:00.000Z");
  const fs::path unreadable = runs_folder(store()) / "20260301-120000-000002";
  make_folders(unreadable);
  write_file(unreadable / "run.json", "{");
  const fs::path array = job("20260301-120000-0000af", "");
  write_file(array / kVariationsFile, "");
  const fs::path old = job("20260301-120000-0000af.1", "20260301-120000-000001");
  const fs::path unknown = job("20260301-120000-0000af.2", "20260301-120000-000002");
  sweep_job_folders(store(), *parse_utc("2026-03-10T12:00:00.000Z"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(unknown));
  EXPECT_TRUE(fs::exists(array));
}

TEST_F(JobFoldersTest, AStoreWithoutJobsIsFine) {
  sweep_job_folders(store(), std::chrono::system_clock::now());
  EXPECT_FALSE(fs::exists(jobs_folder(store())));
}

TEST_F(JobFoldersTest, OneThatIsNotKeptGoesAndIsItsOwnersAlone) {
  const fs::path path = jobs_folder(store()) / "new";
  {
    const JobFolder folder{path};
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    folder.need({"sha256:a", "sha256:b"});
    EXPECT_EQ(read_file(path / "needs"), "sha256:a\nsha256:b\n");
  }
  EXPECT_FALSE(fs::exists(path));
  { JobFolder{path}.keep(); }
  EXPECT_TRUE(fs::exists(path));
}

}  // namespace
}  // namespace mlenv::job
