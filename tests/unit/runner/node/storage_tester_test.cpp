// The process that looks at storage for an agent, on folders of this machine.
#include "runner/node/storage_tester.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <optional>

#include "base/files.hpp"
#include "runner/job/storage_test.hpp"

namespace mlenv::job {
namespace {

constexpr const char* kMarker = ".mlenv-storage-0123456789abcdef";

/// So many answers.
std::vector<std::string> lines_heard(StorageTester& tester, std::size_t count) {
  constexpr int kPatience = 20'000;
  std::vector<std::string> lines;
  while (lines.size() < count) {
    pollfd waits{tester.fd(), POLLIN, 0};
    if (::poll(&waits, 1, kPatience) <= 0) break;
    for (std::string& line : tester.hear()) lines.push_back(std::move(line));
  }
  EXPECT_EQ(lines.size(), count);
  return lines;
}

StorageAnswer asked_storage(StorageTester& tester, const StorageRequest& request) {
  tester.ask(render_storage_request(request));
  const std::vector<std::string> lines = lines_heard(tester, 1);
  return lines.empty() || lines.front().empty() ? StorageAnswer{}
                                                : parse_storage_answer(lines.front());
}

StorageRequest request(std::string_view what, const fs::path& place, bool writes = true) {
  return {std::string(what), 3, {{"scratch", place.string(), writes}}, kMarker, 60'000};
}

TEST(StorageTesterTest, LooksAndLeavesNothing) {
  const TemporaryFolder folder{temporary_root()};
  StorageTester tester;
  const StorageAnswer there = asked_storage(tester, request(kStorageLook, folder.path()));
  EXPECT_EQ(there.round, 3U);
  struct stat status {};
  ASSERT_EQ(::stat(folder.path().c_str(), &status), 0);
  EXPECT_EQ(there.sights.at(0).problem, "");
  EXPECT_EQ(there.sights.at(0).inode, status.st_ino);
  EXPECT_FALSE(there.sights.at(0).type.empty());
  EXPECT_TRUE(fs::is_empty(folder.path()));
  const StorageAnswer absent = asked_storage(tester, request(kStorageLook, folder.path() / "none"));
  EXPECT_EQ(absent.sights.at(0).problem, kStorageAbsent);
  EXPECT_EQ(absent.sights.at(0).said, "No such file or directory");
}

TEST(StorageTesterTest, AFileIsLookedAtWhereItLies) {
  const TemporaryFolder folder{temporary_root()};
  write_file(folder.path() / "words", "a\n");
  StorageTester tester;
  (void)asked_storage(tester, request(kStorageLeave, folder.path() / "words"));
  EXPECT_TRUE(fs::exists(folder.path() / kMarker));
}

TEST(StorageTesterTest, ItsMarkersGoWithIt) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path marker = folder.path() / kMarker;
  {
    StorageTester first;
    (void)asked_storage(first, request(kStorageLeave, folder.path()));
    EXPECT_TRUE(fs::exists(marker));
    StorageTester other;
    EXPECT_TRUE(asked_storage(other, request(kStorageFind, folder.path())).sights.at(0).seen);
    (void)asked_storage(other, request(kStorageRemove, folder.path()));
    EXPECT_FALSE(fs::exists(marker));
    (void)asked_storage(first, request(kStorageLeave, folder.path()));
  }
  EXPECT_FALSE(fs::exists(marker));
}

TEST(StorageTesterTest, TellsWhatItCannotTakeAway) {
  const TemporaryFolder folder{temporary_root()};
  make_folders(folder.path() / kMarker / "within");  // unlink(2) takes no folder
  StorageTester tester;
  EXPECT_NE(asked_storage(tester, request(kStorageRemove, folder.path())).sights.at(0).problem, "");
  const StorageAnswer none =
      asked_storage(tester, request(kStorageRemove, folder.path() / kMarker));
  EXPECT_EQ(none.sights.at(0).problem, "");
}

TEST(StorageTesterTest, LooksNoLongerOnceSomethingElseIsAsked) {
  const TemporaryFolder folder{temporary_root()};
  StorageTester tester;
  tester.ask(render_storage_request(request(kStorageFind, "/proc")));  // no disk of its own
  tester.ask(render_storage_request(request(kStorageLook, folder.path())));
  const std::vector<std::string> answers = lines_heard(tester, 2);
  EXPECT_FALSE(parse_storage_answer(answers.at(0)).sights.at(0).seen);
  EXPECT_EQ(parse_storage_answer(answers.at(1)).what, kStorageLook);
}

TEST(StorageTesterTest, OldOnesOfOthersGoToo) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path old = folder.path() / ".mlenv-storage-old";
  const fs::path fresh = folder.path() / ".mlenv-storage-fresh";
  for (const fs::path& one : {old, fresh}) write_file(one, "");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  StorageTester tester;
  (void)asked_storage(tester, request(kStorageLeave, folder.path()));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST(StorageTesterTest, NamesThatAreNoMarkersAreNotTouched) {
  const TemporaryFolder folder{temporary_root()};
  write_file(folder.path() / "mine", "a");
  StorageTester tester;
  StorageRequest remove = request(kStorageRemove, folder.path());
  for (const char* name : {"mine", ".mlenv-storage-/../mine"}) {
    remove.marker = name;
    (void)asked_storage(tester, remove);
  }
  EXPECT_TRUE(fs::exists(folder.path() / "mine"));
}

}  // namespace
}  // namespace mlenv::job
