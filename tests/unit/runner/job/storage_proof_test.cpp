#include "runner/job/storage_proof.hpp"

#include <set>

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

using std::chrono::seconds;

StorageSight network(std::uint64_t inode = 5, std::uint64_t changed = 7) {
  StorageSight sight;
  sight.type = "nfs";
  sight.device = inode;  // each kernel counts its own
  sight.inode = inode;
  sight.changed_ns = changed;
  return sight;
}
StorageSight disk_sight(std::uint64_t inode = 5, std::uint64_t changed = 7) {
  StorageSight sight = network(inode, changed);
  sight.type = "ext";
  sight.own_disk = true;
  return sight;
}

TEST(StorageCompared, OfOneKernel) {
  EXPECT_EQ(compared(disk_sight(), disk_sight(5, 8), true), kByDevice);
  EXPECT_EQ(compared(disk_sight(), disk_sight(6), true), std::nullopt);
  EXPECT_EQ(compared(network(), network(6), true), kUnproven);  // mounted twice
}

TEST(StorageCompared, OfSeveral) {
  EXPECT_EQ(compared(network(), network(), false), kByCompared);
  EXPECT_EQ(compared(network(), network(6), false), kUnproven);
  EXPECT_EQ(compared(network(), network(5, 8), false), kUnproven);
  EXPECT_EQ(compared(disk_sight(), disk_sight(5, 8), false), std::nullopt);
  EXPECT_EQ(compared(disk_sight(), network(), false), std::nullopt);
}

/// Nodes that answer by what storage each has: numbers that are the same where it is one.
class Nodes {
 public:
  explicit Nodes(std::vector<StorageUse> places)
      : places_(places),
        proof_(std::move(places), {[this](std::size_t node, const std::string& request) {
                                     asked_.emplace_back(node, request);
                                   },
                                   [this](std::size_t node, const std::vector<StorageProven>& all) {
                                     proven[node] = all;
                                   },
                                   [this](std::size_t node, const Error& error) {
                                     failed[node] = error.code() + ": " + error.what();
                                     hints[node] = error.hint();
                                   }}) {}

  void come(std::size_t node, int storage) {
    storage_[node] = storage;
    proof_.met(node, "n" + std::to_string(node + 1), "boot" + std::to_string(node), now);
  }
  void go(std::size_t node) {
    storage_.erase(node);
    proof_.lost(node, now);
  }
  /// Until nobody asks any more. `others`: more are on their way.
  void run(bool others = false) {
    do {
      while (!asked_.empty()) {
        const auto [node, request] = asked_.front();
        asked_.erase(asked_.begin());
        if (!request.empty() && storage_.contains(node) && !silent.contains(node)) {
          answer(node, parse_storage_request(request));
        }
      }
      proof_.tick(now, others);
    } while (!asked_.empty());
  }
  /// Of all storage.
  std::size_t left() const {
    std::size_t count = 0;
    for (const auto& [storage, markers] : markers_) count += markers.size();
    return count;
  }
  std::string how(std::size_t node) const {
    return proven.contains(node) ? proven.at(node).front().how : "";
  }

  StorageProof::Time now{};
  std::map<std::size_t, std::vector<StorageProven>> proven;
  std::map<std::size_t, std::string> failed;
  std::map<std::size_t, std::string> hints;
  std::set<std::size_t> silent;
  std::map<std::size_t, std::string> problems;  ///< of `look`
  std::string leaving_fails;
  std::string deaf_to;                       ///< a request that nobody answers
  std::map<std::size_t, std::string> deaf;   ///< that this node neither does nor answers
  std::map<std::size_t, std::string> keeps;  ///< this node cannot take away what is left, and why
  StorageSight sight = network();

 private:
  void answer(std::size_t node, const StorageRequest& request) {
    if (request.what == deaf_to) return;
    if (deaf.contains(node) && deaf.at(node) == request.what) {
      // Its file system hangs: what it was told to leave may still come to be there.
      if (request.what == kStorageLeave) markers_[storage_.at(node)].insert(request.marker);
      return;
    }
    StorageAnswer answer{request.what, request.round, {}};
    for (std::size_t i = 0; i < request.places.size(); ++i) answer.sights.push_back(sight);
    std::set<std::string>& markers = markers_[storage_.at(node)];
    StorageSight& first = answer.sights.front();
    if (request.what == kStorageLook && problems.contains(node)) first.problem = problems.at(node);
    if (request.what == kStorageLeave && !leaving_fails.empty()) first.problem = leaving_fails;
    if (request.what == kStorageLeave && leaving_fails.empty()) markers.insert(request.marker);
    if (request.what == kStorageRemove && keeps.contains(node)) {
      first.problem = keeps.at(node);
    } else if (request.what == kStorageRemove) {
      markers.erase(request.marker);
    }
    for (StorageSight& one : answer.sights) one.seen = markers.contains(request.marker);
    proof_.heard(node, render_storage_answer(answer), now);
  }

  std::vector<StorageUse> places_;
  std::map<std::size_t, int> storage_;
  std::map<int, std::set<std::string>> markers_;
  std::vector<std::pair<std::size_t, std::string>> asked_;
  StorageProof proof_;
};

const std::vector<StorageUse> kWritten = {{"scratch", "/mnt/scratch/bert", true}};
const std::vector<StorageUse> kRead = {{"data", "/mnt/data", false}};

TEST(StorageProofTest, NodesThatShareIt) {
  Nodes nodes{kWritten};
  for (std::size_t i = 0; i < 3; ++i) nodes.come(i, 1);
  nodes.run();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(nodes.how(i), kByMarker) << i;
  EXPECT_EQ(nodes.left(), 0U);
}

TEST(StorageProofTest, OneWithAFolderOfItsOwnIsRefused) {
  for (std::size_t odd = 0; odd < 3; ++odd) {
    Nodes nodes{kWritten};
    for (std::size_t i = 0; i < 3; ++i) nodes.come(i, i == odd ? 2 : 1);
    nodes.run();
    ASSERT_EQ(nodes.failed.size(), 1U) << odd;
    EXPECT_TRUE(nodes.failed.contains(odd));
    EXPECT_EQ(nodes.failed[odd].find("storage-differs: the storage `scratch` at "
                                     "`/mnt/scratch/bert` is not the same on node `n" +
                                     std::to_string(odd + 1) + "`"),
              0U)
        << nodes.failed[odd];
    EXPECT_EQ(nodes.proven.size(), 2U);
    EXPECT_EQ(nodes.left(), 0U);
  }
}

TEST(StorageProofTest, OfTwoTheSecondIsRefused) {
  Nodes nodes{kWritten};
  nodes.come(0, 1);
  nodes.come(1, 2);
  nodes.run();
  EXPECT_TRUE(nodes.failed.contains(1));
  EXPECT_EQ(nodes.how(0), kAlone);
}

TEST(StorageProofTest, WhatANodeLacksIsItsOwnFault) {
  Nodes nodes{kWritten};
  nodes.problems[0] = kStorageAbsent;
  nodes.problems[1] = kStorageUnwritten;
  for (std::size_t i = 0; i < 4; ++i) nodes.come(i, 1);
  nodes.run();
  EXPECT_EQ(nodes.failed.size(), 2U);
  EXPECT_EQ(nodes.failed[0].find("no-storage: the storage `scratch` is not at"), 0U);
  EXPECT_EQ(nodes.failed[1].find("no-storage: the storage `scratch` cannot be written at"), 0U);
  EXPECT_EQ(nodes.how(2), kByMarker);
}

TEST(StorageProofTest, OneThatComesLaterProvesItAgainstTheOthers) {
  Nodes nodes{kWritten};
  nodes.come(1, 1);
  nodes.run(true);
  EXPECT_EQ(nodes.how(1), "");  // another is on its way
  nodes.now += seconds(6);
  nodes.run(true);
  EXPECT_EQ(nodes.how(1), kAlone);
  nodes.come(0, 2);
  nodes.come(2, 1);
  nodes.run();
  EXPECT_TRUE(nodes.failed.contains(0));
  EXPECT_EQ(nodes.how(1), kByMarker);
  EXPECT_EQ(nodes.how(2), kByMarker);
  nodes.go(2);
  nodes.come(2, 3);  // it boots again, and its storage is not mounted yet
  nodes.run();
  EXPECT_TRUE(nodes.failed.contains(2));
}

TEST(StorageProofTest, WhatALostNodeLeftGoesByTheOthers) {
  Nodes nodes{kWritten};
  for (std::size_t i = 0; i < 3; ++i) nodes.come(i, 1);
  nodes.deaf_to = kStorageFind;
  nodes.run();
  EXPECT_EQ(nodes.left(), 1U);
  nodes.deaf_to.clear();
  nodes.go(0);
  nodes.run();
  EXPECT_EQ(nodes.left(), 0U);
  EXPECT_EQ(nodes.how(1), kByMarker);
  EXPECT_EQ(nodes.how(2), kByMarker);
}

TEST(StorageProofTest, WhatItsOwnerCannotTakeAwayGoesByTheOthers) {
  Nodes nodes{kWritten};
  nodes.keeps[0] = kStorageUnwritten;
  for (std::size_t i = 0; i < 3; ++i) nodes.come(i, 1);
  nodes.run();
  EXPECT_EQ(nodes.left(), 0U);
  EXPECT_TRUE(nodes.failed.empty());
  EXPECT_EQ(nodes.how(2), kByMarker);
}

TEST(StorageProofTest, AnOwnerThatHangsLeavesNothing) {
  for (const std::string_view hangs : {kStorageLeave, kStorageRemove}) {
    Nodes nodes{kWritten};
    nodes.deaf[0] = hangs;
    for (std::size_t i = 0; i < 3; ++i) nodes.come(i, 1);
    nodes.run();
    EXPECT_EQ(nodes.left(), 1U);
    nodes.now += seconds(61);
    nodes.run();
    EXPECT_EQ(nodes.left(), 0U) << hangs;
    EXPECT_EQ(nodes.failed.size(), hangs == kStorageLeave ? 1U : 0U) << hangs;
    EXPECT_EQ(nodes.how(1), kByMarker) << hangs;
  }
}

TEST(StorageProofTest, SaysWhatToDoAboutWhatCannotBeWritten) {
  Nodes nodes{kWritten};
  nodes.problems[0] = kStorageForbidden;
  nodes.problems[1] = kStorageFull;
  for (std::size_t i = 0; i < 3; ++i) nodes.come(i, 1);
  nodes.run();
  EXPECT_EQ(nodes.failed[0].find("no-storage: the storage `scratch` cannot be written at"), 0U);
  EXPECT_NE(nodes.hints[0].find("as in `@scratch/FOLDER`"), std::string::npos);
  EXPECT_EQ(nodes.failed[1].find("no-storage: the storage `scratch` is full at"), 0U);
  EXPECT_EQ(nodes.hints[1].find("make room there"), 0U);
}

TEST(StorageProofTest, ANodeThatSaysNothingForAMinuteIsRefused) {
  Nodes nodes{kWritten};
  nodes.silent = {1};
  nodes.come(0, 1);
  nodes.come(1, 1);
  nodes.run();
  EXPECT_TRUE(nodes.failed.empty());
  nodes.now += seconds(61);
  nodes.run();
  ASSERT_TRUE(nodes.failed.contains(1));
  EXPECT_NE(nodes.failed[1].find("its file system does not answer"), std::string::npos);
  EXPECT_EQ(nodes.how(0), kAlone);
}

TEST(StorageProofTest, NothingIsWrittenWhereItIsOnlyRead) {
  Nodes nodes{kRead};
  nodes.come(0, 1);
  nodes.come(1, 2);
  nodes.run();
  EXPECT_EQ(nodes.how(1), kByCompared);
}

TEST(StorageProofTest, OneThatTrainsIsNotRefusedWhereItFindsNoRoom) {
  Nodes nodes{kWritten};
  nodes.come(0, 1);
  nodes.run();
  nodes.leaving_fails = kStorageUnwritten;
  nodes.come(1, 1);
  nodes.run();
  EXPECT_TRUE(nodes.failed.empty());
  EXPECT_EQ(nodes.how(1), kByCompared);
}

}  // namespace
}  // namespace mlenv::job
