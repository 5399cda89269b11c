// Paths of a supervised process, with openat2(2) and where a filter around mlenv refuses it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>

#include "base/files.hpp"
#include "base/sandbox/tracee.hpp"

namespace mlenv::sandbox {
namespace {

/// Of this thread alone, for as long as it lives.
bool refuse_openat2(int error) {
  std::array<sock_filter, 4> code{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{code.size(), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/// `DEVICE:INODE`, or the errno's name.
std::string found(int base, const std::string& path, bool follow) {
  Place place;
  place.base = base;
  place.follow = follow;
  std::copy_n(path.c_str(), path.size() + 1, place.path.data());
  Fd file;
  const int error = place.open(file);
  struct stat status {};
  if (error != 0) return ::strerrorname_np(error);
  if (!file || ::fstat(file.get(), &status) != 0) return "no file";
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

class SandboxPlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    make_folders(at("t/deep/er"));
    write_file(at("t/file"), "x");
    write_file(at("t/deep/er/file"), "x");
    fs::create_symlink("deep/er", at("t/link"));
    fs::create_symlink("../file", at("t/deep/up"));
    fs::create_symlink(at("t/deep").string(), at("t/absolute"));
    fs::create_symlink("loop", at("t/loop"));
    fs::create_symlink("nowhere", at("t/broken"));
    fs::create_symlink("/proc/self/fd", at("t/magic"));
    fs::create_symlink("/proc/self/root", at("t/root"));
    folder_ = open_file(at("t"), O_PATH | O_DIRECTORY);
  }
  std::vector<std::string> paths() const {
    const std::string magic = "/proc/self/fd/" + std::to_string(folder_.get());
    return {"file",
            "file/",
            "file/x",
            "./deep//er/file",
            "link",
            "link/",
            "link/file",
            "link/../up",
            "deep/up",
            "deep/up/",
            "absolute/er/file",
            "absolute",
            "..",
            "../t/file",
            "loop",
            "loop/x",
            "broken",
            "none",
            "none/x",
            "magic/0",
            "magic/" + std::to_string(folder_.get()) + "/file",
            "root",
            "root/etc",
            "/",
            "/.",
            "/etc/..",
            at("t/link/file").string(),
            magic,
            magic + "/file",
            "/proc/self/root/etc",
            "/proc/mounts",
            "/proc/self/status",
            std::string(300, 'x')};
  }
  /// Followed and not, where openat2 is refused with `error`.
  void expect_same(const std::string& path, int error) const {
    for (const bool follow : {true, false}) {
      const std::string expected = found(folder_.get(), path, follow);
      std::string without;
      std::thread([&] {
        without = refuse_openat2(error) ? found(folder_.get(), path, follow) : "no filter";
      }).join();
      EXPECT_EQ(without, expected) << path << (follow ? "" : ", not followed");
    }
  }
  fs::path at(const std::string& path) const { return top_.path() / path; }

  TemporaryFolder top_{temporary_root()};
  Fd folder_;
};

TEST_F(SandboxPlaceTest, ResolvesTheSameWithoutOpenat2) {
  for (const std::string& path : paths()) {
    for (const int error : {ENOSYS, EPERM}) expect_same(path, error);
  }
  const std::string magic = "/proc/self/fd/" + std::to_string(folder_.get());
  EXPECT_EQ(found(folder_.get(), magic + "/file", true), "ELOOP");
}

}  // namespace
}  // namespace mlenv::sandbox
