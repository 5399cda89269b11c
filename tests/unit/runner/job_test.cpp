#include "runner/local/job.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

using Words = std::vector<std::string>;

LocalRun image_run() {
  LocalRun run;
  run.config.env = {"PATH=/opt/bin", "A=image"};
  run.config.entrypoint = {"entry"};
  run.config.command = {"command", "one"};
  run.config.workdir = "/srv/app";
  return run;
}

TEST(Job, ArgvOfThePersonElseOfTheImage) {
  LocalRun run = image_run();
  EXPECT_EQ(job_argv(run), (Words{"entry", "command", "one"}));
  run.argv = {"mine"};
  EXPECT_EQ(job_argv(run), Words{"mine"});
  EXPECT_THROW(job_argv(LocalRun{}), Error);
}

TEST(Job, EnvironmentHasAnOrder) {
  LocalRun run = image_run();
  run.terminal = true;
  run.env = {"A=person", "CALLERS", "ABSENT", "EMPTY="};
  const Environment caller{{"CALLERS", "c d"}, {"OTHER", "x"}, {"TERM", "vt100"}};
  EXPECT_EQ(job_environment(run, {"http_proxy=p", "A=machine"}, caller, "/home/jo"),
            (Words{"A=person", "CALLERS=c d", "EMPTY=", "HOME=/home/jo", "PATH=/opt/bin",
                   "TERM=vt100", "http_proxy=p"}));
}

TEST(Job, DefaultsWhereTheImageSaysNothing) {
  const Words environment = job_environment(LocalRun{}, {}, {{"TERM", "vt100"}}, "/root");
  EXPECT_EQ(
      environment,
      (Words{"HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}));
}

TEST(Job, Workdir) {
  LocalRun run = image_run();
  EXPECT_EQ(job_workdir(run), "/srv/app");
  run.workdir = "sub";
  EXPECT_EQ(job_workdir(run), "/srv/app/sub");
  run.workdir = "/else";
  EXPECT_EQ(job_workdir(run), "/else");
  EXPECT_EQ(project_folder(run), "/srv/app");
  LocalRun bare;
  EXPECT_EQ(job_workdir(bare), "/");
  bare.project = "/home/jo/project";
  EXPECT_EQ(job_workdir(bare), "/workspace");
  bare.config.workdir = "/";
  EXPECT_EQ(project_folder(bare), "/workspace");
}

class CannotRunTest : public testing::Test {
 protected:
  CannotRunTest() : folder_(temporary_root()) {
    make("image/bin/tool",
         "\x7f"
         "ELF\0",
         0755);
    make("image/bin/data", "text", 0644);
    make("image/bin/script", "#! /bin/tool -x\n", 0755);
    make("image/bin/orphan", "#!/bin/nowhere\n", 0755);
    make("image/bin/plain", "echo hi\n", 0755);
    make("project/go", "#!/bin/tool\n", 0755);
    fs::create_symlink("/mounted/later", folder_.path() / "image/bin/later");
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
}

TEST_F(CannotRunTest, LooksIntoMounts) {
  EXPECT_EQ(status("./go"), 0);
  EXPECT_EQ(status("./stop"), 127);
  EXPECT_EQ(status("go"), 127);  // not on PATH
}

TEST_F(CannotRunTest, WhatCannotBeSeenYetMayRun) {
  EXPECT_EQ(status("later"), 0);
  EXPECT_EQ(status("/tmp/made-by-somebody"), 0);
}

}  // namespace
}  // namespace mlenv
