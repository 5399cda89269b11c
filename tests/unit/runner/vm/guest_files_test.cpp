#include "runner/vm/guest_files.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <functional>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace mlenv {
namespace {

/// What `call` ends with in a process that has lost its rights: 0, or errno.
int call_refusal(const std::function<int()>& call) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    // As in a user namespace, where mlenv is root: filters are for who can gain no rights.
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    forbid_privileged_files();
    errno = 0;
    ::_exit(call() < 0 ? errno : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WEXITSTATUS(status);
}

TEST(GuestFiles, NoneGivesAnotherUsersRights) {
  const TemporaryFolder folder{temporary_root()};
  const std::string file = (folder.path() / "file").string();
  const std::string other = (folder.path() / "new").string();
  write_file(file, "");
  EXPECT_EQ(call_refusal([&] { return ::chmod(file.c_str(), 04755); }), EPERM);
  EXPECT_EQ(call_refusal([&] { return ::fchmodat(AT_FDCWD, file.c_str(), 06755, 0); }), EPERM);
  EXPECT_EQ(call_refusal([&] {
              const Fd fd = open_file(file, O_RDONLY);
              return ::fchmod(fd.get(), S_ISUID | 0700);
            }),
            EPERM);
  EXPECT_EQ(
      call_refusal([&] { return ::open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 04755); }),
      EPERM);
  EXPECT_EQ(
      call_refusal([&] { return ::open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 02755); }),
      EPERM);
  EXPECT_EQ(call_refusal([&] { return ::mknod(other.c_str(), S_IFREG | S_ISUID | 0755, 0); }),
            EPERM);
  EXPECT_EQ(call_refusal([&] { return ::mknod(other.c_str(), S_IFCHR | 0666, 0x103); }), EPERM);
  EXPECT_EQ(call_refusal([&] { return ::mknod(other.c_str(), S_IFBLK | 0666, 0x700); }), EPERM);
  EXPECT_FALSE(fs::exists(other));
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07000U, 0U);
}

TEST(GuestFiles, OrdinaryOnesAreMade) {
  const TemporaryFolder folder{temporary_root()};
  const std::string file = (folder.path() / "file").string();
  write_file(file, "");
  EXPECT_EQ(call_refusal([&] { return ::chmod(file.c_str(), 0755); }), 0);
  EXPECT_EQ(call_refusal([&] {
              return ::open((file + "-1").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            }),
            0);
  EXPECT_EQ(call_refusal([&] { return ::mkdir((file + "-2").c_str(), 01777); }), 0);
  EXPECT_EQ(call_refusal([&] { return ::mknod((file + "-3").c_str(), S_IFIFO | 0644, 0); }), 0);
  EXPECT_EQ(call_refusal([&] { return ::mknod((file + "-4").c_str(), S_IFSOCK | 0644, 0); }), 0);
}

TEST(GuestFiles, SetGroupIdIsLeftOutOfRootsModes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryFolder folder{temporary_root()};
  const std::string file = (folder.path() / "file").string();
  const std::string made = (folder.path() / "made").string();
  write_file(file, "");
  // As what QEMU is for it: started, so that it has what the bounding set leaves.
  const std::string words = "chmod 2755 " + file + " && mkdir -m 0777 " + made;
  EXPECT_EQ(call_refusal([&] {
              const StartedWithoutGroups lesser;
              ::execl("/bin/sh", "sh", "-c", words.c_str(), nullptr);
              return -1;
            }),
            0);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0755U);
}

}  // namespace
}  // namespace mlenv
