#include "runner/local/stage.hpp"
#include "tests/support/error_code.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(StageMessages, ARequestComesBackWhole) {
  LocalRun run;
  run.config = {"arm64", "v8", "linux", {"A=b"}, {"entry"}, {"cmd"}, "/w", "jo:1", {}};
  run.trees = {"/a", "/b\xff"};
  run.mounts = {{"/s", "/t", true}};
  run.env = {"K", "L=\xfe"};
  run.workdir = "w";
  run.argv = {"x", ""};
  run.project = "/p";
  run.scratch = "/scratch";
  run.terminal = true;
  run.runtime = "crun";
  run.devices.nodes = {{"/dev/a", "/dev/b", "c", 1, 5, 0666, "rw", 7, {}}};
  run.devices.mounts = {{"/h", "/c", "bind", {"ro"}}};
  run.devices.hooks = {{"createContainer", "/h", {"a"}, {"K=V"}, {}}};
  run.devices.groups = {44};
  run.devices.library_folders = {"/l"};
  run.overlay = OverlayMethod::short_names;
  run.options.limits = {1U << 30U, 1U << 31U, true, 1.5, "0-1", 100};
  run.options.ulimits = {{"nofile", 1024, {}}};
  run.options.shm_bytes = 7;
  run.options.disk_bytes = 8;
  run.options.tmpfs = {{"/m", {"size=1"}}};
  run.options.read_only = true;
  run.options.user = "jo:video";
  run.options.groups = {"7"};
  run.options.hostname = "h";
  run.options.network = "private";
  run.options.ports = {{"127.0.0.1", 8080, 80, "udp"}};
  run.options.labels = {{"k", "v"}};
  run.throwaway_mounts = true;
  run.layer = LayerUse{"/store/kept/a", true};
  run.fds.layer = 9;
  run.fresh = {{1, "out", true}};
  const LocalRun back = parse_request(render_request(run));
  EXPECT_EQ(back.config.architecture, "arm64");
  EXPECT_EQ(back.config.env, run.config.env);
  EXPECT_EQ(back.config.entrypoint, run.config.entrypoint);
  EXPECT_EQ(back.config.command, run.config.command);
  EXPECT_EQ(back.config.workdir, "/w");
  EXPECT_EQ(back.config.user, "jo:1");
  EXPECT_EQ(back.trees, run.trees);
  ASSERT_EQ(back.mounts.size(), 1U);
  EXPECT_EQ(back.mounts[0].source, "/s");
  EXPECT_EQ(back.mounts[0].target, "/t");
  EXPECT_TRUE(back.mounts[0].read_only);
  EXPECT_EQ(back.env, run.env);
  EXPECT_EQ(back.devices, run.devices);
  EXPECT_EQ(back.options, run.options);
  EXPECT_EQ(back.workdir, "w");
  EXPECT_EQ(back.argv, run.argv);
  EXPECT_EQ(back.project, run.project);
  EXPECT_EQ(back.scratch, run.scratch);
  EXPECT_TRUE(back.terminal);
  EXPECT_EQ(back.runtime, "crun");
  EXPECT_EQ(back.overlay, OverlayMethod::short_names);
  EXPECT_TRUE(back.throwaway_mounts);
  ASSERT_TRUE(back.layer);
  EXPECT_EQ(back.layer->folder, "/store/kept/a");
  EXPECT_TRUE(back.layer->to_write);
  EXPECT_EQ(back.fds.layer, kStageLayer);
  ASSERT_EQ(back.fresh.size(), 1U);
  EXPECT_EQ(back.fresh[0].mount, 1U);
  EXPECT_EQ(back.fresh[0].within, "out");
  EXPECT_TRUE(back.fresh[0].existed);
  run.project.reset();
  EXPECT_FALSE(parse_request(render_request(run)).project);
}

TEST(StageMessages, OutcomesComeBack) {
  const StageOutcome end =
      parse_stage_outcome(render_outcome(RunOutcome{{143, true}, EndedBy::stop, 3, true}, "why"));
  EXPECT_EQ(end.run.exit, (Exit{143, true}));
  EXPECT_EQ(end.run.ended_by, EndedBy::stop);
  EXPECT_EQ(end.run.attempts, 3U);
  EXPECT_TRUE(end.run.out_of_memory);
  EXPECT_EQ(end.complaint, "why");
  EXPECT_EQ(parse_outcome(render_outcome(Exit{1, false})), (Exit{1, false}));
  try {
    parse_outcome(render_outcome(failure("no-overlay", "what").because("why").hint("do")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-overlay");
    EXPECT_EQ(error.frames(), (std::vector<std::string>{"what", "why"}));
    EXPECT_EQ(error.hint(), "do");
  }
  EXPECT_EQ(code_of([] { parse_outcome("nonsense"); }), "stage-message");
}

}  // namespace
}  // namespace mlenv
