#include "runner/local/user.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <unistd.h>

#include "base/error.hpp"
#include "runner/local/home.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "broken line\n"
    "jo:x:1000:1001:Jo:/home/jo:/bin/sh\n";
constexpr std::string_view kGroup = "root:x:0:\njo:x:1001:\nvideo:x:44:al,jo\naudio:x:29:jo\n";

using Groups = std::vector<std::uint32_t>;

TEST(User, EmptyIsRoot) {
  const ContainerUser user = resolve_user("", kPasswd, kGroup);
  EXPECT_EQ(user.uid, 0U);
  EXPECT_EQ(user.gid, 0U);
  EXPECT_EQ(user.home, "/root");
  EXPECT_EQ(resolve_user("", "", "").home, "/root");
}

TEST(User, NameBringsItsGroups) {
  const ContainerUser user = resolve_user("jo", kPasswd, kGroup);
  EXPECT_EQ(user.uid, 1000U);
  EXPECT_EQ(user.gid, 1001U);
  EXPECT_EQ(user.groups, (Groups{29, 44}));
  EXPECT_EQ(user.home, "/home/jo");
  EXPECT_EQ(resolve_user("1000", kPasswd, kGroup).home, "/home/jo");
}

TEST(User, GroupStandsAlone) {
  const ContainerUser user = resolve_user("jo:video", kPasswd, kGroup);
  EXPECT_EQ(user.gid, 44U);
  EXPECT_TRUE(user.groups.empty());
  EXPECT_EQ(resolve_user("1000:77", kPasswd, kGroup).gid, 77U);
}

TEST(User, UnknownNumberIsFine) {
  const ContainerUser user = resolve_user("4321", kPasswd, kGroup);
  EXPECT_EQ(user.uid, 4321U);
  EXPECT_EQ(user.gid, 0U);
  EXPECT_EQ(user.home, "/");
}

TEST(User, IdsThatAreNoneAreNotRoot) {
  constexpr std::string_view kOdd =
      "minus:x:4294967295:0::/:\nbeyond:x:4294967296:0::/:\nword:x:zero:0::/:\ngroup:x:7:-1::/:\n";
  for (const char* user : {"4294967295", "4294967296", "-2", "0:4294967295", "0:-1", "minus",
                           "beyond", "word", "group"}) {
    EXPECT_EQ(code_of([&] { resolve_user(user, kOdd, kGroup); }), "no-user") << user;
  }
  EXPECT_EQ(resolve_user("4294967294", kOdd, kGroup).uid, 4294967294U);
  ContainerUser user;
  EXPECT_EQ(code_of([&] { add_groups(user, {"4294967295"}, kGroup); }), "no-user");
}

TEST(User, UnknownNameIsNot) {
  for (const char* user : {"nobody", "jo:nobody", "-1"}) {
    EXPECT_EQ(code_of([&] { resolve_user(user, kPasswd, kGroup); }), "no-user") << user;
  }
}

TEST(User, MoreGroupsByNameOrNumber) {
  ContainerUser user = resolve_user("jo:44", kPasswd, kGroup);
  add_groups(user, {"audio", "7", "29"}, kGroup);
  EXPECT_EQ(user.groups, (Groups{7, 29}));
  EXPECT_EQ(code_of([&] { add_groups(user, {"nobody"}, kGroup); }), "no-user");
}

/// Whose files a test makes.
ContainerUser ourselves(std::string home, bool listed) {
  return {::geteuid(), ::getegid(), {}, std::move(home), listed};
}

TEST(Home, IsMadeAndTheUserGetsAName) {
  const TemporaryFolder tree{fs::temp_directory_path()};
  ContainerUser user = ourselves("/home/jo", false);
  give_home(user, ImageRoot{tree.path()});
  EXPECT_EQ(user.home, "/home/jo");
  EXPECT_TRUE(fs::is_directory(tree.path() / "home/jo"));
  const std::string number = std::to_string(user.uid);
  const std::string name = user.uid == 0 ? "root" : "user-" + number;
  EXPECT_EQ(read_file(tree.path() / "etc/passwd"),
            name + ":x:" + number + ":" + std::to_string(user.gid) + "::/home/jo:/bin/sh\n");
  give_home(user, ImageRoot{tree.path()});  // nothing twice
  const std::string passwd = read_file(tree.path() / "etc/passwd");
  EXPECT_EQ(std::count(passwd.begin(), passwd.end(), '\n'), 1);
}

TEST(Home, OfNobodyIsAnother) {
  const TemporaryFolder tree{fs::temp_directory_path()};
  for (const char* home : {"/nonexistent", "", "relative"}) {
    ContainerUser user = ourselves(home, true);
    give_home(user, ImageRoot{tree.path()});
    EXPECT_NE(user.home, home);
    EXPECT_TRUE(fs::is_directory(tree.path() / user.home.substr(1))) << user.home;
  }
}

}  // namespace
}  // namespace mlenv
