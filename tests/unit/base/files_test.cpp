#include "base/files.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cstddef>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

/// From here on the kernel answers EIO to whoever lists a folder.
void break_listing() {
  std::array<sock_filter, 4> code{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getdents64, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  const bool done = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  if (!done) std::_Exit(2);
}

class Files : public ::testing::Test {
 protected:
  TemporaryFolder folder_{temporary_root()};
  fs::path at(const char* name) const { return folder_.path() / name; }
};

TEST_F(Files, WriteThenRead) {
  const std::string content("a\0b\n", 4);
  write_file(at("x"), content);
  EXPECT_EQ(read_file(at("x")), content);
  EXPECT_EQ(mlenv::file_size(at("x")), 4U);
  write_file(at("x"), "replaced", false);
  EXPECT_EQ(read_file_if_exists(at("x")), "replaced");
  EXPECT_EQ(list_folder(folder_.path()), std::vector<fs::path>{at("x")});
}

TEST_F(Files, AbsentIsToldApart) {
  EXPECT_EQ(read_file_if_exists(at("x")), std::nullopt);
  EXPECT_EQ(code_of([&] { (void)read_file(at("x")); }), "absent");
  EXPECT_EQ(code_of([&] { (void)mlenv::file_size(at("x")); }), "absent");
  EXPECT_TRUE(list_folder(at("none")).empty());
  EXPECT_NO_THROW(remove_tree(at("x")));
}

TEST_F(Files, DescriptorsCloseOnExecAndOnce) {
  write_file(at("x"), "x");
  Fd fd = open_file(at("x"));
  const int number = fd.get();
  EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
  Fd moved = std::move(fd);
  EXPECT_FALSE(fd);  // NOLINT(bugprone-use-after-move): it is the empty state that is looked at
  EXPECT_EQ(moved.get(), number);
  moved.reset();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST_F(Files, AtomicFileLeavesNothingWithoutCommit) {
  {
    AtomicFile file{at("x")};
    file.write(as_bytes("half"));
    EXPECT_FALSE(fs::exists(at("x")));
    // Without a name where the file system has such files: then kill -9 leaves nothing either.
    const Fd nameless{::open(folder_.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)};
    EXPECT_EQ(list_folder(folder_.path()).size(), nameless ? 0U : 1U);
  }
  EXPECT_TRUE(list_folder(folder_.path()).empty());
}

TEST_F(Files, AtomicFileReplacesAsAWhole) {
  write_file(at("x"), "old");
  const Fd reader = open_file(at("x"));
  AtomicFile file{at("x"), 0600};
  file.write(as_bytes("new"));
  EXPECT_EQ(read_file(at("x")), "old");
  file.commit();
  EXPECT_EQ(read_file(at("x")), "new");
  EXPECT_EQ(fs::status(at("x")).permissions(), fs::perms(0600));
  FdSource source{reader.get()};
  EXPECT_EQ(read_all(source, 100), "old");
}

TEST_F(Files, RemoveTreeFollowsNoLinksAndEntersClosedFolders) {
  make_folders(at("keep"));
  write_file(at("keep/file"), "x");
  make_folders(at("tree/a/b"));
  write_file(at("tree/a/b/file"), "x");
  fs::create_symlink(at("keep"), at("tree/link"));
  fs::create_symlink("nowhere", at("tree/broken"));
  fs::permissions(at("tree/a"), fs::perms(0555));
  fs::permissions(at("tree"), fs::perms(0555));
  remove_tree(at("tree"));
  EXPECT_FALSE(fs::exists(at("tree")));
  EXPECT_TRUE(fs::exists(at("keep/file")));
  fs::create_symlink(at("keep"), at("link"));
  remove_tree(at("link"));
  EXPECT_TRUE(fs::exists(at("keep/file")));
}

TEST_F(Files, AListingThatBreaksOffIsNotTheEnd) {
  make_folders(at("tree") / "in");
  EXPECT_EXIT(
      {
        break_listing();
        std::_Exit(code_of([&] { remove_tree(at("tree")); }) == "io" ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_TRUE(fs::exists(at("tree") / "in"));
}

TEST_F(Files, CloseReportsWhatWasLost) {
  Fd fd{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  ::close(fd.get());
  EXPECT_EQ(code_of([&] { fd.close_checked("gone"); }), "io");
  EXPECT_FALSE(fd);
}

TEST_F(Files, TemporaryFolderGoesUnlessReleased) {
  fs::path gone;
  fs::path kept;
  {
    const TemporaryFolder one{folder_.path(), "one-"};
    write_file(one.path() / "file", "x");
    gone = one.path();
    TemporaryFolder two{folder_.path()};
    kept = two.release();
    EXPECT_EQ(fs::status(gone).permissions(), fs::perms(0700));
  }
  EXPECT_FALSE(fs::exists(gone));
  EXPECT_TRUE(fs::exists(kept));
}

TEST_F(Files, SlicesShareADescriptor) {
  write_file(at("x"), "0123456789");
  const Fd fd = open_file(at("x"));
  SliceSource first{fd.get(), 2, 3};
  SliceSource second{fd.get(), 5, 5};
  EXPECT_EQ(read_all(second, 100), "56789");
  EXPECT_EQ(read_all(first, 100), "234");
  SliceSource beyond{fd.get(), 8, 5};
  EXPECT_EQ(code_of([&] { (void)read_all(beyond, 100); }), "truncated");
}

TEST_F(Files, LocksExcludeEachOther) {
  {
    const FileLock shared = FileLock::wait(at("lock"), FileLock::Mode::shared);
    EXPECT_TRUE(FileLock::attempt(at("lock"), FileLock::Mode::shared));
    EXPECT_FALSE(FileLock::attempt(at("lock"), FileLock::Mode::exclusive));
  }
  const auto exclusive = FileLock::attempt(at("lock"), FileLock::Mode::exclusive);
  EXPECT_TRUE(exclusive);
  EXPECT_FALSE(FileLock::attempt(at("lock"), FileLock::Mode::shared));
}

TEST_F(Files, AFullDiskIsToldApart) {
  const Fd full = open_file("/dev/full", O_WRONLY);
  EXPECT_EQ(code_of([&] { write_all(full.get(), as_bytes("x")); }), "no-space");
}

}  // namespace
}  // namespace mlenv
