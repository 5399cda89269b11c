#include "recipes/storage_names.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

const StorageNames kKnown = {{"home", "/nfs/home"}, {"scratch", "/mnt/scratch"}};

std::string path_of(std::string_view source) { return storage_place(source, kKnown).path.string(); }
std::string storage_refusal(std::string_view source) {
  return error_of([&] { (void)storage_place(source, kKnown); }).what();
}

TEST(StorageNames, AreSaidByAMarkThatNoPathHas) {
  EXPECT_TRUE(names_storage("@scratch/bert"));
  for (const char* path : {"/a/@b", "./@scratch", "a@b", ""}) EXPECT_FALSE(names_storage(path));
}

TEST(StorageNames, MeanFoldersOfIt) {
  EXPECT_EQ(path_of("@scratch"), "/mnt/scratch");
  EXPECT_EQ(path_of("@scratch/"), "/mnt/scratch");
  EXPECT_EQ(path_of("@home/jo/bert/"), "/nfs/home/jo/bert");
  EXPECT_EQ(storage_place("@home/jo", kKnown).name, "home");
}

TEST(StorageNames, ThatLeadOutAreRefused) {
  for (const char* source : {"@home/..", "@home/a/../../b", "@home//a", "@home/./a"}) {
    EXPECT_EQ(code_of([&] { (void)storage_place(source, kKnown); }), "bad-mount") << source;
  }
}

TEST(StorageNames, ThatAreUnknownNameThoseThatThereAre) {
  EXPECT_EQ(code_of([] { (void)storage_place("@x", {}); }), "unknown-storage");
  EXPECT_EQ(storage_refusal("@scrach/a"),
            "no storage is called `scrach`: there are `home`, `scratch`");
  EXPECT_EQ(error_of([] { (void)storage_place("@scrach/a", kKnown); }).hint(),
            "did you mean `@scratch`?");
}

}  // namespace
}  // namespace mlenv
