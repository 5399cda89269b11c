#include "runner/local/program.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

class CannotRunTest : public testing::Test {
 protected:
  CannotRunTest() : folder_(temporary_root()) {
    make("image/bin/tool",
         std::string_view("\x7f"
                          "ELF\0",
                          5),
         0755);
    make("image/bin/data", "text", 0644);
    make("image/bin/script", "#! /bin/tool -x\n", 0755);
    make("image/bin/orphan", "#!/bin/nowhere\n", 0755);
    make("image/bin/plain", "echo hi\n", 0755);
    make("project/go", "#!/bin/tool\n", 0755);
    // As an image whose /usr is a mount: links lead from the image into the mount and back.
    fs::create_symlink("work/inner", folder_.path() / "image/linked");
    fs::create_symlink("/tmp/later", folder_.path() / "image/bin/later");
    fs::create_symlink("circle", folder_.path() / "image/bin/circle");
    make("project/inner/deep", "#!/bin/tool\n", 0755);
    fs::create_symlink("/bin/tool", folder_.path() / "project/inner/back");
    fs::create_symlink("/bin/tool", folder_.path() / "image/bin/link");
    bundle_.env = {"PATH=/none:/bin"};
    bundle_.workdir = "/work";
    bundle_.mounts = {{folder_.path() / "project", "/work", false}};
  }
  void make(const std::string& path, std::string_view text, mode_t mode) {
    const fs::path file = folder_.path() / path;
    make_folders(file.parent_path());
    write_file(file, text, false);
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
  }
  int status(const std::string& program) {
    bundle_.argv = {program};
    const auto refusal = cannot_run(bundle_, ImageRoot{folder_.path() / "image"});
    return refusal ? refusal->status : 0;
  }
  TemporaryFolder folder_;
  Bundle bundle_;
};

TEST_F(CannotRunTest, AsAShellHasIt) {
  EXPECT_EQ(status("tool"), 0);
  EXPECT_EQ(status("/bin/tool"), 0);
  EXPECT_EQ(status("../bin/tool"), 0);
  EXPECT_EQ(status("link"), 0);
  EXPECT_EQ(status("script"), 0);
  EXPECT_EQ(status("absent"), 127);
  EXPECT_EQ(status("/bin/absent"), 127);
  EXPECT_EQ(status("data"), 126);
  EXPECT_EQ(status("/bin"), 126);
  EXPECT_EQ(status("orphan"), 127);
  EXPECT_EQ(status("plain"), 126);
  EXPECT_EQ(status("circle"), 127);
}

TEST_F(CannotRunTest, WhatIsTooLongForLinux) {
  const auto why = [&] {
    const auto refusal = cannot_run(bundle_, ImageRoot{folder_.path() / "image"});
    return refusal ? std::to_string(refusal->status) + " " + refusal->why : "";
  };
  bundle_.ulimits = {{"stack", std::uint64_t{8} << 20U, {}}};
  bundle_.argv = {"tool"};
  bundle_.env.push_back("BIG=" + std::string(131067, 'x'));
  EXPECT_EQ(why(), "");
  bundle_.env.back() += 'x';
  EXPECT_EQ(
      why(),
      "126 cannot run `tool`: its variable `BIG` is 131072 bytes long, and Linux takes 131071 "
      "at most; put it into a file");
  bundle_.env.pop_back();
  bundle_.argv.emplace_back(131072, 'x');
  EXPECT_EQ(why().substr(0, 55), "126 cannot run `tool`: its argument 1 is 131072 bytes l");
  bundle_.argv.assign(22, std::string(100000, 'x'));
  bundle_.argv[0] = "tool";
  EXPECT_TRUE(why().starts_with("126 cannot run `tool`: its arguments and variables are 2100"));
  EXPECT_NE(why().find("Linux takes 2097152"), std::string::npos) << "a quarter of the stack";
  bundle_.ulimits[0].soft = {};  // unlimited: 6 MiB are the most
  EXPECT_EQ(why(), "");
}

TEST_F(CannotRunTest, TellsHowAnInstallerGetsIntoTheImage) {
  bundle_.argv = {"pip"};
  const auto refusal = cannot_run(bundle_, ImageRoot{folder_.path() / "image"});
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->why.find("`packages: [pip]`"), std::string::npos) << refusal->why;
}

TEST_F(CannotRunTest, LooksIntoMounts) {
  EXPECT_EQ(status("./go"), 0);
  EXPECT_EQ(status("./stop"), 127);
  EXPECT_EQ(status("go"), 127);  // not on PATH
  EXPECT_EQ(status("/linked/deep"), 0);
  EXPECT_EQ(status("/linked/back"), 0);
  EXPECT_EQ(status("/linked/../go"), 0);
  EXPECT_EQ(status("/linked/none"), 127);
}

TEST_F(CannotRunTest, WhatCannotBeSeenYetMayRun) {
  EXPECT_EQ(status("later"), 0);
  EXPECT_EQ(status("/tmp/made-by-somebody"), 0);
}

}  // namespace
}  // namespace mlenv
