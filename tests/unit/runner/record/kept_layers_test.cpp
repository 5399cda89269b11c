#include "runner/record/kept_layers.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <thread>

#include "base/error.hpp"
#include "runner/record/record_files.hpp"

namespace mlenv {
namespace {

class KeptLayersTest : public ::testing::Test {
 protected:
  template <class Work>
  std::string code_of(Work&& work) const {
    try {
      std::forward<Work>(work)();
    } catch (const Error& error) {
      return error.code();
    }
    return "";
  }
  /// The record of a run that ended; its id.
  std::string record(const RecordedLayer& layer) {
    RunStart start;
    start.id = fmt::format("20260301-120000-{:06}", ++runs_);
    start.layer = layer;
    const fs::path folder = records_.folder_of(start.id);
    make_folders(folder);
    write_file(folder / kStartFile, render_run_start(start));
    write_file(folder / kHeldFile, "");
    return start.id;
  }

  TemporaryFolder store_{temporary_root()};
  KeptLayers layers_{store_.path()};
  RunRecords records_{runs_folder(store_.path())};
  int runs_ = 0;
};

TEST_F(KeptLayersTest, OneWritesOrAnyNumberRead) {
  const std::string id = [&] {
    const HeldLayer made = layers_.make("sha256:1");
    EXPECT_EQ(code_of([&] { (void)layers_.hold(made.id(), "sha256:1", false); }), "layer-busy");
    return made.id();
  }();
  const HeldLayer one = layers_.hold(id, "sha256:1", false);
  const HeldLayer two = layers_.hold(id, "sha256:1", false);
  EXPECT_EQ(one.folder(), store_.path() / "kept" / id);
  EXPECT_EQ(code_of([&] { (void)layers_.hold(id, "sha256:1", true); }), "layer-busy");
  EXPECT_EQ(code_of([&] { (void)layers_.hold(id, "sha256:2", false); }), "layer-differs");
  EXPECT_EQ(code_of([&] { (void)layers_.hold("20260301-120000-0fa4f1", "sha256:1", false); }),
            "no-kept-layer");
}

TEST_F(KeptLayersTest, GoesWithTheLastRunThatWroteToIt) {
  const std::string id = layers_.make("sha256:1").id();
  const std::string first = record({id, std::nullopt, true});
  const std::string second = record({id, first, true});
  record({id, second, false});  // it only started from it
  EXPECT_EQ(layers_.remove_unnamed().count, 0U);
  records_.remove(first);
  EXPECT_EQ(layers_.remove_unnamed().count, 0U);
  records_.remove(second);
  {
    const HeldLayer held = layers_.hold(id, "sha256:1", false);
    EXPECT_EQ(layers_.remove_unnamed().count, 0U);
  }
  EXPECT_EQ(layers_.remove_unnamed().count, 1U);
  EXPECT_EQ(list_folder(store_.path() / "kept").size(), 0U);
}

TEST_F(KeptLayersTest, GoesThoughARunThatEndedHoldsItForAMoment) {
  std::optional<HeldLayer> held = layers_.make("sha256:1");
  std::thread ended([&] {
    (void)::poll(nullptr, 0, 50);
    held.reset();
  });
  EXPECT_EQ(layers_.remove_unnamed().count, 1U);
  ended.join();
  EXPECT_EQ(list_folder(store_.path() / "kept").size(), 0U);
}

TEST_F(KeptLayersTest, StaysWhereARecordCannotBeRead) {
  const std::string id = layers_.make("sha256:1").id();
  const std::string run = record({id, std::nullopt, true});
  write_file(records_.folder_of(run) / kStartFile, "{");
  const RemovedLayers removed = layers_.remove_unnamed();
  EXPECT_EQ(removed.count, 0U);
  EXPECT_EQ(removed.staying.size(), 1U);
  EXPECT_EQ(list_folder(store_.path() / "kept").size(), 1U);
}

TEST_F(KeptLayersTest, OneThatCannotBeRemovedKeepsNoOther) {
  const std::string first = layers_.make("sha256:1").id();
  const std::string second = layers_.make("sha256:1").id();
  const fs::path earlier = store_.path() / "kept" / std::min(first, second);
  fs::remove(earlier / kHeldFile);  // as of a layer that is half removed
  fs::create_symlink("nowhere/held", earlier / kHeldFile);
  const RemovedLayers removed = layers_.remove_unnamed();
  EXPECT_EQ(removed.count, 1U);
  ASSERT_EQ(removed.staying.size(), 1U);
  EXPECT_NE(removed.staying.front().find(earlier.string()), std::string::npos);
  EXPECT_EQ(list_folder(store_.path() / "kept"), std::vector<fs::path>{earlier});
}

TEST_F(KeptLayersTest, NobodyLocksWhatIsHalfRemoved) {
  const std::string id = layers_.make("sha256:1").id();
  fs::remove(store_.path() / "kept" / id / kHeldFile);
  EXPECT_EQ(code_of([&] { (void)layers_.hold(id, "sha256:1", true); }), "no-kept-layer");
  EXPECT_FALSE(fs::exists(store_.path() / "kept" / id / kHeldFile));
}

TEST_F(KeptLayersTest, CountsThoseWhoHadItToWrite) {
  const std::string id = [&] {
    const HeldLayer made = layers_.make("sha256:1");
    EXPECT_EQ(made.generation(), 0U);
    return made.id();
  }();
  EXPECT_EQ(layers_.hold(id, "sha256:1", false).generation(), 1U);
  EXPECT_EQ(layers_.hold(id, "sha256:1", true).generation(), 1U);
  EXPECT_EQ(layers_.hold(id, "sha256:1", false).generation(), 2U);
  EXPECT_EQ(layers_.generation(id), 2U);
  EXPECT_EQ(layers_.generation("gone"), 0U);
}

TEST_F(KeptLayersTest, RemembersItsOwnFiles) {
  const HeldLayer layer = layers_.make("sha256:1");
  EXPECT_TRUE(own_files(layer.folder()).empty());
  note_own_files(layer.folder(), {"/etc/a", "/etc/b\nc"});
  EXPECT_EQ(own_files(layer.folder()), (std::vector<std::string>{"/etc/a", "/etc/b\nc"}));
}

TEST_F(KeptLayersTest, HasTheSizeOfItsFiles) {
  const HeldLayer layer = layers_.make("sha256:1");
  EXPECT_EQ(layers_.size_bytes(layer.id()), 0U);
  make_folders(upper_of(layer.folder()) / "a");
  write_file(upper_of(layer.folder()) / "a/file", std::string(100'000, 'x'));
  EXPECT_GE(layers_.size_bytes(layer.id()), 100'000U);
}

TEST_F(KeptLayersTest, HasTheIdsOfItsFirstRun) {
  const HeldLayer layer = layers_.make("sha256:1");
  require_same_ids(layer.folder(), "         0       1000          1\n");
  require_same_ids(layer.folder(), "0 1000 1\n");  // however it is laid out
  EXPECT_EQ(code_of([&] { require_same_ids(layer.folder(), "0 0 4294967295\n"); }),
            "layer-differs");
}

}  // namespace
}  // namespace mlenv
