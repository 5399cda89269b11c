#include "images/tree_check.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "images/tree_writer.hpp"

namespace mlenv {
namespace {

constexpr uid_t kOrdinary = 61234;

/// An ordinary user for as long as it lives: no mode keeps root out.
class OrdinaryUser {
 public:
  OrdinaryUser() : root_(::geteuid() == 0) {
    if (root_ && ::seteuid(kOrdinary) != 0) ADD_FAILURE() << "cannot become an ordinary user";
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
  ~OrdinaryUser() {
    if (root_ && ::seteuid(0) != 0) ADD_FAILURE() << "cannot become root again";
  }

 private:
  bool root_;
};

class TreeCheckTest : public testing::Test {
 protected:
  TreeCheckTest() {
    if (::geteuid() == 0) (void)!::chown(folder_.path().c_str(), kOrdinary, kOrdinary);
  }
  fs::path tree() const { return folder_.path() / "tree"; }

  static TarEntry entry(std::string path, TarEntry::Type type, std::uint32_t mode) {
    TarEntry one;
    one.path = std::move(path);
    one.type = type;
    one.mode = mode;
    return one;
  }
  /// Folders that cannot be listed or passed, files that cannot be read; one folder has its entry
  /// behind what is in it.
  void write() const {
    fs::create_directory(tree());
    TreeWriter writer{tree()};
    writer.add_folder("shut", {.mode = 0});
    writer.add_folder("shut/in", {.mode = 0300});
    writer.add_file("shut/in/file", {.mode = 0200}, as_bytes(kText));
    writer.add_folder("late", {.mode = 0400});
    writer.add_file("late/file", {.mode = 0644}, as_bytes(kText));
    writer.add_hardlink("late/link", "late/file");
    writer.add_folder("hides", {.mode = 0});
    writer.mark_opaque("hides");
    writer.finish();
  }
  std::optional<std::string> flaw(std::string_view text = kText) const {
    using Type = TarEntry::Type;
    TreeCheck check{tree()};
    const auto take = [&](const TarEntry& one, std::string_view content = {}) {
      MemorySource data{as_bytes(content)};
      check.take(one, data);
    };
    TarEntry file = entry("shut/in/file", Type::file, 0200);
    file.size_bytes = text.size();
    take(entry("shut", Type::folder, 0));
    take(entry("shut/in", Type::folder, 0300));
    take(file, text);
    TarEntry late = entry("late/file", Type::file, 0644);
    late.size_bytes = kText.size();
    take(late, kText);
    TarEntry link = entry("late/link", Type::hardlink, 0644);
    link.link = "late/file";
    take(link);
    take(entry("late", Type::folder, 0400));
    take(entry("hides", Type::folder, 0));
    take(entry("hides/.wh..wh..opq", Type::file, 0644));
    return check.finish();
  }
  static constexpr std::string_view kText = "content";

  TemporaryFolder folder_{fs::temp_directory_path()};
};

TEST_F(TreeCheckTest, ModesThatKeepTheOwnerOutAreNoDamage) {
  const OrdinaryUser user;
  write();
  EXPECT_EQ(flaw(), std::nullopt);
  EXPECT_EQ(flaw(), std::nullopt) << "the check changed the tree";
  EXPECT_EQ(fs::status(tree() / "shut").permissions(), fs::perms::none);
  EXPECT_EQ(flaw("CONTENT"), "`shut/in/file` has other content");
}

TEST_F(TreeCheckTest, NothingIsOpenedUpForWhomNoModeKeepsOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "modes keep ordinary users out";
  write();
  const auto changed = [&](const char* name) {
    struct stat status {};
    EXPECT_EQ(::lstat((tree() / name).c_str(), &status), 0);
    return std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  };
  const auto shut = changed("shut");
  const auto file = changed("shut/in/file");
  EXPECT_EQ(flaw(), std::nullopt);
  EXPECT_EQ(changed("shut"), shut);
  EXPECT_EQ(changed("shut/in/file"), file);
}

TEST_F(TreeCheckTest, WhatIsInAShutFolderAndNotInTheLayerIsFound) {
  const OrdinaryUser user;
  write();
  fs::permissions(tree() / "shut", fs::perms::owner_all);
  write_file(tree() / "shut/extra", "x", false);
  fs::permissions(tree() / "shut", fs::perms::none);
  EXPECT_EQ(flaw(), "`shut/extra` is not in the layer");
}

}  // namespace
}  // namespace mlenv
