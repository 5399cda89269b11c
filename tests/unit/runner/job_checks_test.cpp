#include "runner/local/job_checks.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

class JobChecksTest : public testing::Test {
 protected:
  JobChecksTest() : folder_(temporary_root()) {
    make_folders(folder_.path() / "image/etc");
    write_file(folder_.path() / "image/etc/passwd", "", false);
    make_folders(folder_.path() / "project/sub");
    write_file(folder_.path() / "project/file", "", false);
    bundle_.workdir = "/workspace";
    bundle_.mounts = {{folder_.path() / "project", "/workspace", false}};
  }
  /// Code of what is thrown, and its last cause; empty when nothing is.
  template <typename Check>
  static std::string complaint(Check&& check) {
    try {
      check();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Kind::usage);
      return error.code() + ": " + error.frames().back();
    }
    return {};
  }
  std::string of_mount(const std::string& source, const std::string& target) {
    Bundle bundle = bundle_;
    bundle.mounts.push_back({folder_.path() / "project" / source, target, false});
    const ImageRoot image{folder_.path() / "image"};
    return complaint([&] { check_mounts(bundle, image); });
  }
  std::string of_workdir(const std::string& workdir) {
    bundle_.workdir = workdir;
    const ImageRoot image{folder_.path() / "image"};
    return complaint([&] { check_workdir(bundle_, image); });
  }
  TemporaryFolder folder_;
  Bundle bundle_;
};

TEST_F(JobChecksTest, SystemFoldersAreFolders) {
  const ImageRoot image{folder_.path() / "image"};
  check_system_folders(image);  // absent: a runtime makes them
  for (const char* name : {"dev", "proc", "sys"}) {
    const fs::path place = folder_.path() / "image" / name;
    const auto refused = [&] {
      try {
        check_system_folders(image);
      } catch (const Error& error) {
        return error.code() + ": " + error.frames().front();
      }
      return std::string{};
    };
    for (const fs::path& target : {folder_.path() / "project", fs::path("etc"), fs::path("none")}) {
      fs::create_symlink(target, place);
      EXPECT_EQ(refused(), fmt::format("image-root: `/{}` of the image is a link to `{}`", name,
                                       target.string()));
      fs::remove(place);
    }
    write_file(place, "", false);
    EXPECT_EQ(refused(), fmt::format("image-root: `/{}` of the image is no folder", name));
    fs::remove(place);
    make_folders(place);
    EXPECT_EQ(refused(), "");
  }
}

TEST_F(JobChecksTest, MountsDoNotLieOnSystemFoldersByLinks) {
  for (const char* name : {"dev", "sys"}) {
    make_folders(folder_.path() / "image" / name);
    fs::create_symlink(fmt::format("/{}", name),
                       folder_.path() / "image" / fmt::format("to-{}", name));
    fs::create_symlink(fmt::format("../{}", name),
                       folder_.path() / "project" / fmt::format("to-{}", name));
    const std::string refused = fmt::format(
        "bad-mount: links of the image or of another mount lead from there to the container's own "
        "`/{}`",
        name);
    EXPECT_EQ(of_mount("sub", fmt::format("/to-{}", name)), refused);
    EXPECT_EQ(of_mount("sub", fmt::format("/workspace/to-{}", name)), refused);
  }
  EXPECT_EQ(of_mount("sub", "/to-dev/own"), "");
}

TEST_F(JobChecksTest, MountsFitWhatIsBelow) {
  EXPECT_EQ(of_mount("sub", "/etc"), "");
  EXPECT_EQ(of_mount("file", "/etc/passwd"), "");
  EXPECT_EQ(of_mount("sub", "/new/folder"), "");
  EXPECT_EQ(of_mount("file", "/new"), "");
  EXPECT_EQ(of_mount("file", "/dev/file"), "");
  EXPECT_EQ(of_mount("file", "/workspace/file"), "");
  EXPECT_EQ(of_mount("sub", "/etc/passwd"),
            "bad-mount: the source is a folder, and the target is a file");
  EXPECT_EQ(of_mount("file", "/etc"),
            "bad-mount: the source is a file, and the target is a folder");
  EXPECT_EQ(of_mount("sub", "/etc/passwd/x/y"), "bad-mount: `/etc/passwd` is a file, not a folder");
  EXPECT_EQ(of_mount("sub", "/workspace/file"),
            "bad-mount: the source is a folder, and the target is a file");
  EXPECT_EQ(of_mount("sub", "/sys/no-such-thing"), "bad-mount: nothing can be made in `/sys`");
}

TEST_F(JobChecksTest, NothingIsMadeInAReadOnlyMount) {
  bundle_.mounts.front().read_only = true;
  EXPECT_EQ(of_mount("sub", "/workspace/sub"), "");
  EXPECT_EQ(of_mount("sub", "/workspace/new"),
            "bad-mount: there is no `/workspace/new`, and `/workspace` is mounted read-only");
}

TEST_F(JobChecksTest, NoFolderInMemoryInAReadOnlyMount) {
  bundle_.mounts.front().read_only = true;
  const ImageRoot image{folder_.path() / "image"};
  const auto of_memory = [&](const char* target) {
    Bundle bundle = bundle_;
    CdiMount memory;
    memory.path = target;
    bundle.file_systems.push_back(memory);
    return complaint([&] { check_mounts(bundle, image); });
  };
  EXPECT_EQ(of_memory("/workspace/sub"), "");
  EXPECT_EQ(of_memory("/elsewhere/new"), "");
  EXPECT_EQ(of_memory("/tmp"), "");
  EXPECT_EQ(of_memory("/workspace/new"),
            "bad-mount: there is no `/workspace/new`, and `/workspace` is mounted read-only");
  fs::create_directory_symlink("/workspace", folder_.path() / "image/link");
  EXPECT_EQ(of_memory("/link/new").substr(0, 10), "bad-mount:");
}

TEST_F(JobChecksTest, TheJobStartsInAFolder) {
  EXPECT_EQ(of_workdir("/etc"), "");
  EXPECT_EQ(of_workdir("/workspace/sub"), "");
  EXPECT_EQ(of_workdir("/made/in/the/image"), "");
  EXPECT_EQ(of_workdir("/tmp/anything"), "");
  EXPECT_EQ(of_workdir("/etc/passwd"), "bad-workdir: `/etc/passwd` is a file, not a folder");
  EXPECT_EQ(of_workdir("/etc/passwd/x"), "bad-workdir: `/etc/passwd` is a file, not a folder");
  EXPECT_EQ(of_workdir("/workspace/file"),
            "bad-workdir: `/workspace/file` is a file, not a folder");
  EXPECT_EQ(of_workdir("/workspace/new/deep"), "bad-workdir: there is no such folder");
  EXPECT_EQ(list_folder(folder_.path() / "project").size(), 2U) << "nothing was made";
}

}  // namespace
}  // namespace mlenv
