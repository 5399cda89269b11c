// What a matrix is, written and read; folders of variations; metrics.
#include "runner/matrix/matrix_file.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::matrix {
namespace {

std::vector<std::string> folders(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Variation& one : variations_of(parse_matrix(words))) names.push_back(one.folder);
  return names;
}

TEST(MatrixFile, FoldersAreNamedByValues) {
  EXPECT_EQ(folders({"lr=0.1,1e-3", "seed=1"}), (Strings{"lr=0.1,seed=1", "lr=1e-3,seed=1"}));
  // What no file system, or no shell, likes.
  EXPECT_EQ(folders({"p=a/b,../c,$(x)"}), (Strings{"p=a_b", "p=.._c", "p=__x_"}));
  EXPECT_EQ(folders({"p=a b,a/b"}), (Strings{"p=a_b", "p=a_b-2"}));
  const std::string longest(300, 'x');
  const Strings cut = folders({"p=" + longest + "1," + longest + "2"});
  EXPECT_EQ(cut.front().size(), 120U);
  EXPECT_NE(cut.front(), cut.back());
}

TEST(MatrixFile, SecretsAreNotKept) {
  const std::vector<Variation> all = variations_of(parse_matrix({"HF_TOKEN=one,two", "lr=1"}));
  EXPECT_FALSE(all.front().values.front().value.has_value());
  EXPECT_EQ(all.front().folder, "lr=1");
  EXPECT_EQ(all.back().folder, "lr=1-2");
  EXPECT_EQ(shown_values(all.front()), "HF_TOKEN=*** lr=1");
  EXPECT_EQ(folders({"HF_TOKEN=one,two"}), (Strings{"1", "2"}));
}

MatrixRecord some_record() {
  MatrixRecord record;
  record.id = "20260301-120000-0fa4f1";
  record.started = "2026-03-01T12:00:00.250Z";
  record.state = "running";
  record.results = "/somewhere";
  record.image = {"small", "sha256:" + std::string(64, 'a'), std::nullopt};
  record.argv = {"train", "{lr}"};
  record.plan = {{"image", "sha256:1"}, {"command", "sha256:2"}};
  record.variations = variations_of(parse_matrix({"lr=1,2"}));
  record.variations.front().state = "done";
  record.variations.front().metrics = {{"loss", 0.5, std::nullopt}, {"note", std::nullopt, "ok"}};
  return record;
}

TEST(MatrixFile, ComesBackAsItWas) {
  const MatrixRecord record = some_record();
  EXPECT_EQ(parse_matrix_record(render_matrix(record), "it"), record);
  EXPECT_EQ(not_done(record), (std::vector<std::size_t>{1}));
  EXPECT_EQ(count_in(record, "done"), 1U);
}

TEST(MatrixFile, SaysWhatDiffers) {
  MatrixRecord other = some_record();
  EXPECT_TRUE(differing_parts(some_record(), other).empty());
  other.plan.back().digest = "sha256:3";
  EXPECT_EQ(differing_parts(some_record(), other), (Strings{"command"}));
}

TEST(MatrixFile, IsForOneAtATime) {
  const TemporaryFolder folder{temporary_root()};
  const MatrixFolder held{folder.path() / "m"};
  EXPECT_FALSE(held.read());
  held.write(some_record());
  EXPECT_EQ(held.read(), some_record());
  try {
    const MatrixFolder other{folder.path() / "m"};
    FAIL() << "two hold it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "matrix-busy");
  }
  EXPECT_EQ(peek(folder.path() / "m"), some_record());
  write_file(folder.path() / "m" / kMatrixFile, "{}");
  EXPECT_FALSE(peek(folder.path() / "m"));
}

TEST(MatrixFile, GoesByTheFolderThatItOpened) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path elsewhere = folder.path() / "elsewhere";
  make_folders(elsewhere);
  const MatrixFolder held{folder.path() / "m"};
  const std::string real = held.real_path();
  EXPECT_EQ(real, fs::canonical(folder.path() / "m"));
  fs::rename(folder.path() / "m", folder.path() / "moved");
  fs::create_directory_symlink(elsewhere, folder.path() / "m");
  const MatrixRecord record = some_record();
  held.write(record);
  EXPECT_TRUE(held.make_folder(record.variations.front()));
  EXPECT_TRUE(fs::is_empty(elsewhere));
  EXPECT_TRUE(fs::is_directory(folder.path() / "moved" / record.variations.front().folder));
  held.take_back(record);
  EXPECT_FALSE(fs::exists(folder.path() / "moved" / kMatrixFile));
}

TEST(MatrixFile, FollowsNoLinkInTheVariationsPlace) {
  const TemporaryFolder folder{temporary_root()};
  make_folders(folder.path() / "elsewhere");
  const MatrixFolder held{folder.path() / "m"};
  const Variation one = some_record().variations.front();
  fs::create_directory_symlink(folder.path() / "elsewhere", folder.path() / "m" / one.folder);
  try {
    (void)held.make_folder(one);
    FAIL() << "a link is a variation's folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "matrix-exists");
  }
  write_file(folder.path() / "elsewhere" / kMetricsFile, R"({"loss": 1})");
  EXPECT_THROW((void)read_metrics(held.fd(), one.folder, "shown"), Error);
}

/// A store's runs, with records of the variations of `some_record`.
class MatrixSettles : public testing::Test {
 protected:
  void add_run(const std::string& id, std::uint64_t number, std::optional<std::uint64_t> exit,
               std::optional<std::string> ended_by = {}) {
    RunStart start;
    start.id = id;
    start.variation =
        RecordedVariation{some_record().id, number, 2, {}, "/somewhere/x", "/somewhere"};
    const fs::path folder = folder_.path() / id;
    make_folders(folder);
    write_file(folder / "run.json", render_run_start(start));
    if (!exit) return;
    RunEnd end;
    end.exit_code = *exit;
    end.ended_by = std::move(ended_by);
    write_file(folder / "end.json", render_run_end(end));
  }
  /// States of both variations, and their runs' last letters.
  std::string settled(MatrixRecord record) {
    settle(record, folder_.path());
    std::string text;
    for (const Variation& one : record.variations) {
      text += one.state + " " + (one.run ? one.run->substr(one.run->size() - 1) : "-") + " ";
    }
    return text;
  }
  MatrixRecord settled_record(MatrixRecord record) {
    settle(record, folder_.path());
    return record;
  }
  static MatrixRecord cut_off() {
    MatrixRecord record = some_record();
    for (Variation& one : record.variations) one.state = "running";
    return record;
  }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(MatrixSettles, ByTheNewestRunOfEach) {
  add_run("20260301-120001-00000a", 1, 0);
  add_run("20260301-120002-00000b", 2, 3);
  EXPECT_EQ(settled(cut_off()), "done a failed b ");
  add_run("20260301-120003-00000c", 2, std::nullopt);
  EXPECT_EQ(settled(cut_off()), "done a lost c ");
  // One that was told to stop may have ended with 0, and is not done.
  MatrixRecord stopped = cut_off();
  stopped.variations.front().state = "stopped";
  stopped.variations.front().run = "20260301-120001-00000a";
  EXPECT_EQ(settled(stopped), "stopped a lost c ");
  // It was begun again since.
  add_run("20260301-120004-00000d", 1, std::nullopt);
  EXPECT_EQ(settled(stopped), "lost d lost c ");
  // What ended in order needs no records.
  stopped.state = "stopped";
  EXPECT_EQ(settled(stopped), "stopped a running - ");
}

TEST_F(MatrixSettles, WhatMlenvStopEndedIsNotDone) {
  add_run("20260301-120001-00000a", 1, 0, "stop");
  add_run("20260301-120002-00000b", 2, 124, "timeout");
  EXPECT_EQ(settled(cut_off()), "stopped a failed b ");
}

TEST_F(MatrixSettles, WithWhatTheRunsMeasured) {
  add_run("20260301-120001-00000a", 1, 0);
  add_run("20260301-120002-00000b", 2, 0);
  const TemporaryFolder results{temporary_root()};
  MatrixRecord record = cut_off();
  record.results = results.path();
  record.variations.front().metrics.clear();
  const auto write = [&](const Variation& one, std::string_view text) {
    make_folders(results.path() / one.folder);
    write_file(results.path() / one.folder / kMetricsFile, text);
  };
  write(record.variations.front(), R"({"loss": 0.25})");
  write(record.variations.back(), "{");
  record = settled_record(record);
  EXPECT_EQ(record.variations.front().metrics, (std::vector<Metric>{{"loss", 0.25, std::nullopt}}));
  EXPECT_EQ(record.variations.back().state, "done");
  EXPECT_TRUE(record.variations.back().metrics.empty());
}

TEST_F(MatrixSettles, WithoutRecordsNothingIsDone) {
  add_run("20260301-110000-00000a", 1, 0);  // before it began
  EXPECT_EQ(settled(cut_off()), "lost - lost - ");
}

TEST(MatrixMetrics, AreReadAsPythonWritesThem) {
  const std::vector<Metric> metrics = parse_metrics(
      R"({"loss": NaN, "acc": 0.97123456, "best": -Infinity, "name": "a NaN \"NaN", "ok": true,
          "many": [1], "none": null, "steps": 12})",
      "it");
  std::string text;
  for (const Metric& one : metrics) text += one.name + " " + metric_text(one) + ", ";
  EXPECT_EQ(text, "loss NaN, acc 0.971235, best -Infinity, name a NaN \"NaN, ok true, steps 12, ");
}

TEST(MatrixMetrics, OrNotAtAll) {
  for (const char* bad : {"[1]", "{\"a\": ", "", "12"}) {
    try {
      (void)parse_metrics(bad, "it");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "bad-json");
    }
  }
  const TemporaryFolder folder{temporary_root()};
  EXPECT_TRUE(read_metrics(folder.path()).empty());
  // What a container made may lead out of it.
  write_file(folder.path() / "elsewhere", "{\"a\": 1}");
  fs::create_symlink(folder.path() / "elsewhere", folder.path() / kMetricsFile);
  EXPECT_THROW((void)read_metrics(folder.path()), Error);
}

}  // namespace
}  // namespace mlenv::matrix
