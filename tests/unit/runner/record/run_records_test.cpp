#include "runner/record/run_records.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runner/record/record_files.hpp"
#include "runner/record/run_order.hpp"
#include "runner/record/run_recorder.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

RunStart start_named(const std::string& id) {
  RunStart start;
  start.id = id;
  start.mlenv = "1.2.3";
  start.started = "2026-03-01T12:00:00.250Z";
  start.image = {"jax:latest", "sha256:" + std::string(64, 'a'), std::nullopt};
  start.argv = {"python", "train.py"};
  start.env = {{"A", "1"}, {"HF_TOKEN", std::nullopt}};
  start.mounts = {{"/data", "/mnt", true}};
  return start;
}

class RunRecordsTest : public testing::Test {
 protected:
  fs::path make(const std::string& id) const {
    fs::path folder = runs_folder(store_.path()) / id;
    make_folders(folder);
    write_file(folder / kStartFile, render_run_start(start_named(id)));
    write_file(folder / kHeldFile, "");
    return folder;
  }
  fs::path runs() const { return runs_folder(store_.path()); }
  RunRecords records() const { return RunRecords{runs()}; }

 private:
  TemporaryFolder store_{temporary_root()};
};

RunEnd end_with(std::uint64_t code, std::optional<std::uint64_t> signal = std::nullopt) {
  RunEnd end;
  end.ended = "2026-03-01T12:00:01.000Z";
  end.seconds = 0.75;
  end.exit_code = code;
  end.signal = signal;
  end.usage.largest_process_bytes = known<std::uint64_t>(4096, "getrusage(2)");
  return end;
}

TEST_F(RunRecordsTest, AFolderThatIsNotThereHoldsNone) {
  EXPECT_EQ(records().ids(), Strings{});
  EXPECT_THROW((void)records().find("last"), Error);
}

TEST_F(RunRecordsTest, StatesFollowTheEndAndTheLock) {
  const fs::path folder = make("20260301-120000-0fa4f1");
  const RunRecords all = records();
  EXPECT_EQ(all.read("20260301-120000-0fa4f1").state, "lost");
  {
    const auto held = FileLock::attempt(folder / kHeldFile, FileLock::Mode::exclusive);
    EXPECT_EQ(all.read("20260301-120000-0fa4f1").state, "running");
    EXPECT_FALSE(all.remove("20260301-120000-0fa4f1"));
  }
  const auto state_after = [&](const RunEnd& end) {
    write_file(folder / kEndFile, render_run_end(end));
    return all.read("20260301-120000-0fa4f1").state;
  };
  EXPECT_EQ(state_after(end_with(0)), "done");
  EXPECT_EQ(state_after(end_with(3)), "failed");
  EXPECT_EQ(state_after(end_with(143, 15)), "killed");
  RunEnd refused = end_with(125);
  refused.failure = RunFailure{"no-runtime", "there is none"};
  EXPECT_EQ(state_after(refused), "refused");
  write_file(folder / kEndFile, "{ cut off");
  EXPECT_EQ(all.read("20260301-120000-0fa4f1").state, "lost");
  EXPECT_TRUE(all.remove("20260301-120000-0fa4f1"));
  EXPECT_EQ(all.ids(), Strings{});
}

TEST_F(RunRecordsTest, ARunIsFoundByPartsOfItsId) {
  (void)make("20260301-120000-0fa4f1");
  (void)make("20260302-120000-00000a");
  (void)make("20260302-120001-00100b");
  const RunRecords all = records();
  EXPECT_EQ(all.ids().size(), 3U);
  EXPECT_EQ(all.find("last"), "20260302-120001-00100b");
  EXPECT_EQ(all.find("0fa4f1"), "20260301-120000-0fa4f1");
  EXPECT_EQ(all.find("20260301"), "20260301-120000-0fa4f1");
  const auto code_of = [&](std::string_view word) -> std::string {
    try {
      (void)all.find(word);
    } catch (const Error& error) {
      return error.code();
    }
    return "";
  };
  EXPECT_EQ(code_of("20260302"), "ambiguous");
  EXPECT_EQ(code_of("4f1"), "no-run");
  EXPECT_EQ(code_of("beef"), "no-run");
}

TEST_F(RunRecordsTest, ADamagedStartIsAnErrorWithTheId) {
  const fs::path folder = make("20260301-120000-0fa4f1");
  write_file(folder / kStartFile, "{}");
  try {
    (void)records().read("20260301-120000-0fa4f1");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "damaged-run");
    EXPECT_NE(std::string(error.what()).find("20260301-120000-0fa4f1"), std::string::npos);
  }
}

TEST_F(RunRecordsTest, TheLastIsTheNewestThatCanBeRead) {
  (void)make("20260301-120000-0fa4f1");
  write_file(make("20260302-120000-00000a") / kStartFile, "{");
  EXPECT_EQ(records().find("last"), "20260301-120000-0fa4f1");
}

TEST_F(RunRecordsTest, AWrongClockSpoilsTheOrderOfNoLaterRun) {
  // Of an mlenv that noted no order, and of another program.
  const std::string of_2035 = "20350101-000000-000001";
  (void)make(of_2035);
  (void)make("20260301-120000-0fa4f1");
  EXPECT_EQ(records().find("last"), "20260301-120000-0fa4f1");
  // Its clock was ahead for a while, and after that behind.
  for (const char* const id :
       {"20350102-000000-000002", "20260302-120000-000003", "19700101-000000-000004"}) {
    note_run(runs(), id);
    (void)make(id);
    EXPECT_EQ(records().find("last"), id);
  }
  EXPECT_EQ(records().find("last~2"), "20350102-000000-000002");
  EXPECT_EQ(records().ids().front(), of_2035);
}

TEST_F(RunRecordsTest, WhatIsNoRecordByItsNameIsNone) {
  (void)make("20260301-120000-0fa4f1");
  (void)make("experiments");
  EXPECT_EQ(records().ids(), Strings{"20260301-120000-0fa4f1"});
}

TEST_F(RunRecordsTest, NothingIsWrittenToRead) {
  const fs::path folder = make("20260301-120000-0fa4f1");
  fs::remove(folder / kHeldFile);
  EXPECT_EQ(records().read("20260301-120000-0fa4f1").state, "lost");
  EXPECT_FALSE(fs::exists(folder / kHeldFile));
}

TEST_F(RunRecordsTest, WhatAKilledMlenvLeftUnfinishedGoes) {
  const fs::path folder = make(".new-0123456789ab");
  EXPECT_EQ(records().ids(), Strings{});
  {
    const auto held = FileLock::attempt(folder / kHeldFile, FileLock::Mode::exclusive);
    records().sweep();
    EXPECT_TRUE(fs::exists(folder));
  }
  records().sweep();
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(RunRecordsTest, ARecordIsGoneOnWithOnceNobodyHoldsIt) {
  const std::string id = "20260301-120000-0fa4f1";
  const fs::path folder = make(id);
  const fs::path runs = folder.parent_path();
  write_file(folder / kEndFile, render_run_end(end_with(125)));
  write_file(folder / kHostFile, render_facts({}));
  EXPECT_FALSE(hold_record(runs, "20260301-120000-000000", std::chrono::milliseconds{0}));
  {
    const auto held = FileLock::attempt(folder / kHeldFile, FileLock::Mode::exclusive);
    EXPECT_FALSE(hold_record(runs, id, std::chrono::milliseconds{0}));
  }
  RunStart now;
  now.launch = RecordedLaunch{};
  now.launch->offered = {"n7"};
  {
    RunRecorder recorder{runs, id, hold_record(runs, id, std::chrono::seconds{10}).value(), now};
    EXPECT_EQ(recorder.id(), id);
    const RunRecord record = records().read(id);
    EXPECT_EQ(record.state, "running");
    EXPECT_EQ(record.start.started, "2026-03-01T12:00:00.250Z");
    EXPECT_EQ(record.start.argv, (Strings{"python", "train.py"}));
    ASSERT_TRUE(record.start.launch);
    EXPECT_EQ(record.start.launch->offered, Strings{"n7"});
    recorder.ended({});
  }
  const RunRecord record = records().read(id);
  EXPECT_EQ(record.state, "done");
  EXPECT_GT(record.end->seconds, 3600);  // since it was first started
}

TEST(RunRecord, IsReadAsItWasWritten) {
  RunRecord record;
  record.state = "failed";
  record.start = start_named("20260301-120000-0fa4f1");
  record.end = end_with(3);
  record.code = CodeState{known<std::string>("abc", "git"), unknown<std::string>("no branch"),
                          known<std::vector<std::string>>({"a"}, "git"),
                          known<std::string>("sha256:x", "the files")};
  record.facts.emplace();
  record.agreement =
      job::Agreement{{"n1", "n2"}, {{"kernel", "kernel", "noted", {"5", {}}, "", "", ""}}};
  const std::string text = render_run(record);
  EXPECT_EQ(render_run(parse_run(text, "it")), text);
  EXPECT_EQ(parse_run(text, "it").end, record.end);
  EXPECT_EQ(parse_run(text, "it").agreement, record.agreement);
  EXPECT_EQ(parse_run(text, "it").start, record.start);
  EXPECT_THROW((void)parse_run("{}", "it"), Error);
}

TEST(RunRecord, AnAgreementOfOthersMayHaveTooManyValues) {
  const job::Agreement nodes{{"n1"}, {{"kernel", "kernel", "noted", {"5", "6"}, "", "", ""}}};
  EXPECT_EQ(job::who_has_what(nodes, nodes.rows.front()), "5 on n1");
}

TEST(UtcText, IsRfc3339AndBack) {
  using std::chrono::milliseconds;
  const std::chrono::system_clock::time_point when{milliseconds(1772366400250)};
  EXPECT_EQ(utc_text(when), "2026-03-01T12:00:00.250Z");
  EXPECT_EQ(parse_utc("2026-03-01T12:00:00.250Z"), when);
  EXPECT_EQ(parse_utc("2026-03-01T12:00:00Z"), when - milliseconds(250));
  EXPECT_EQ(utc_text(std::chrono::system_clock::time_point{milliseconds(-1)}),
            "1969-12-31T23:59:59.999Z");
  for (const char* text : {"", "yesterday", "2026-03-01", "2026-03-01T12:00:00.2Z",
                           "2026-03-01T12:00:00+01:00", "2026-03-01T12:00:00.250Zx"}) {
    EXPECT_FALSE(parse_utc(text)) << text;
  }
}

}  // namespace
}  // namespace mlenv
