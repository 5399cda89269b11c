#include "runner/local/job.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

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
  EXPECT_EQ(job_argv(run), (Strings{"entry", "command", "one"}));
  run.argv = {"mine"};
  EXPECT_EQ(job_argv(run), Strings{"mine"});
  EXPECT_EQ(code_of([] { (void)job_argv(LocalRun{}); }), "no-command");
}

TEST(Job, NoWordOfTheImageEndsEarly) {
  using namespace std::string_literals;
  LocalRun run;
  run.config.workdir = "/w\0x"s;
  EXPECT_EQ(code_of([&] { (void)job_workdir(run); }), "bad-image");
  run.config.env = {"A=1", "B\0=2"s};
  EXPECT_EQ(code_of([&] { (void)job_environment(run, {}, {}, "/root"); }), "bad-image");
  run.config.entrypoint = {"/bin/sh\0"s};
  EXPECT_EQ(code_of([&] { (void)job_argv(run); }), "bad-image");
  run.argv = {"mine"};
  EXPECT_EQ(job_argv(run), Strings{"mine"});
}

TEST(Job, EnvironmentHasAnOrder) {
  LocalRun run = image_run();
  run.terminal = true;
  run.env = {"A=person", "CALLERS", "ABSENT", "EMPTY="};
  const Variables caller{{"CALLERS", "c d"}, {"OTHER", "x"}, {"TERM", "vt100"}};
  EXPECT_EQ(job_environment(run, {"http_proxy=p", "A=machine"}, caller, "/home/jo"),
            (Strings{"A=person", "CALLERS=c d", "EMPTY=", "HOME=/home/jo", "PATH=/opt/bin",
                     "TERM=vt100", "http_proxy=p"}));
}

TEST(Job, OfOneVariableTheLastWordCounts) {
  LocalRun run;
  const Variables caller{{"A", "caller"}};
  const auto has = [&](const char* entry) {
    const Strings all = job_environment(run, {}, caller, "/root");
    return std::find(all.begin(), all.end(), entry) != all.end();
  };
  run.env = {"A=person", "A"};
  EXPECT_TRUE(has("A=caller"));
  run.env = {"A", "A=person"};
  EXPECT_TRUE(has("A=person"));
}

TEST(Job, DevicesComeBetweenImageAndPerson) {
  LocalRun run;
  run.config.env = {"A=image", "B=image", "LD_LIBRARY_PATH=/opt/lib"};
  run.devices.env = {"A=device", "B=device", "C=device"};
  run.devices.library_folders = {"/driver"};
  run.env = {"B=person"};
  EXPECT_EQ(job_environment(run, {}, {}, "/root"),
            (Strings{"A=device", "B=person", "C=device", "HOME=/root",
                     "LD_LIBRARY_PATH=/opt/lib:/driver", std::string("PATH=") + kDefaultPath}));
}

TEST(JobEnvironment, LibrariesThatComeFirst) {
  LocalRun run;
  run.first_libraries = "/usr/local/cuda/compat";
  run.devices.library_folders = {"/driver"};
  const auto paths = [&] {
    for (const std::string& one : job_environment(run, {}, {}, "/root")) {
      if (one.starts_with("LD_LIBRARY_PATH=")) return one;
    }
    return std::string();
  };
  EXPECT_EQ(paths(), "LD_LIBRARY_PATH=/usr/local/cuda/compat:/driver");
  run.env = {"LD_LIBRARY_PATH=/mine"};
  EXPECT_EQ(paths(), "LD_LIBRARY_PATH=/usr/local/cuda/compat:/mine:/driver");
}

TEST(Job, DefaultsWhereTheImageSaysNothing) {
  const Strings environment = job_environment(LocalRun{}, {}, {{"TERM", "vt100"}}, "/root");
  EXPECT_EQ(
      environment,
      (Strings{"HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}));
}

TEST(Job, Workdir) {
  LocalRun run = image_run();
  EXPECT_EQ(job_workdir(run), "/srv/app");
  run.workdir = "sub";
  EXPECT_EQ(job_workdir(run), "/srv/app/sub");
  run.workdir = "/else";
  EXPECT_EQ(job_workdir(run), "/else");
  for (const char* within : {"sub/../other/", ".", "./x"}) {
    run.workdir = within;
    EXPECT_TRUE(job_workdir(run).starts_with("/srv/app")) << within;
  }
  for (const char* out : {"..", "../..", "../appendix", "sub/../.."}) {
    run.workdir = out;
    EXPECT_EQ(code_of([&] { (void)job_workdir(run); }), "bad-workdir") << out;
  }
  run.workdir = "/opt/";
  EXPECT_EQ(job_workdir(run), "/opt");
  EXPECT_EQ(project_folder(run), "/srv/app");
  LocalRun bare;
  EXPECT_EQ(job_workdir(bare), "/");
  bare.project = "/home/jo/project";
  EXPECT_EQ(job_workdir(bare), "/workspace");
  bare.config.workdir = "/";
  EXPECT_EQ(project_folder(bare), "/workspace");
}

TEST(Job, AnImagesWorkdirMayBeWrittenInOtherWays) {
  LocalRun run = image_run();
  for (const char* written : {"/srv/app/", "/srv//app", "/srv/./app/.", "/srv/x/../app"}) {
    run.config.workdir = written;
    run.workdir.clear();
    EXPECT_EQ(job_workdir(run), "/srv/app") << written;
    EXPECT_EQ(project_folder(run), "/srv/app") << written;
    run.workdir = "sub";
    EXPECT_EQ(job_workdir(run), "/srv/app/sub") << written;
  }
  run.config.workdir = "/.";
  EXPECT_EQ(project_folder(run), "/workspace");
}

}  // namespace
}  // namespace mlenv
