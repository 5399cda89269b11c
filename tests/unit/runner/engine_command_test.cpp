#include "runner/engine/engine_command.hpp"

#include <gtest/gtest.h>
#include <algorithm>

#include "base/error.hpp"
#include "runner/engine/keeper_client.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

ContainerEngine engine(const std::string& name) {
  ContainerEngine one;
  one.name = one.program = name;
  one.version = "4.3.1";
  one.image = "localhost/mlenv:abc";
  return one;
}

/// Whether the words hold these, one after the other.
bool holds(const Command& command, const std::vector<std::string>& words) {
  const auto& all = command.argv;
  return std::search(all.begin(), all.end(), words.begin(), words.end()) != all.end();
}

EngineContainer container() {
  EngineContainer one;
  one.name = "mlenv-1";
  one.folder = "/scratch/shown";
  one.settings = "/scratch/settings";
  one.hostname = "host";
  one.shm_bytes = 1000;
  return one;
}

TEST(EngineCommand, QuotesPaths) {
  EngineContainer one = container();
  one.mounts = {{"/a,b", "/data", true}};
  EXPECT_TRUE(holds(
      run_command(engine("docker"), one),
      {"--mount", R"(type=bind,"source=/a,b",target=/data,bind-propagation=rprivate,readonly)"}));
  EXPECT_TRUE(
      holds(run_command(engine("podman"), one), {"--volume", "/a,b:/data:rbind,rprivate,ro"}));
  one.mounts = {{"/a,b:c", "/data", true}};
  EXPECT_THROW((void)run_command(engine("podman"), one), Error);
}

TEST(EngineCommand, MountsNothingOfAnotherName) {
  for (const Mount& mount : {Mount{"/a\r\nb", "/data", false}, Mount{"/a", "/da\r\nta", true}}) {
    EngineContainer one = container();
    one.mounts = {mount};
    EXPECT_EQ(code_of([&] { (void)run_command(engine("docker"), one); }), "bad-mount");
    EXPECT_TRUE(holds(run_command(engine("podman"), one),
                      {"--volume", fmt::format("{}:{}:rbind,rprivate{}", mount.source.string(),
                                               mount.target, mount.read_only ? ",ro" : "")}));
  }
  EngineContainer one = container();
  one.mounts = {{"/a\nb", "/data", false}, {"/a\rb", "/more", false}};
  EXPECT_TRUE(holds(run_command(engine("docker"), one),
                    {"--mount", "type=bind,\"source=/a\nb\",target=/data,bind-propagation=rprivate",
                     "--mount", "type=bind,source=/a\rb,target=/more,bind-propagation=rprivate"}));
}

TEST(EngineCommand, HasOneThingAtEachTarget) {
  EngineContainer one = container();
  one.memory = {{"/mem", {"size=1"}}};
  one.mounts = {{"/x", "/tmp", false}, {"/y", "/tmp", false}, {"/z", "/mem", false}};
  const Command command = run_command(engine("docker"), one);
  EXPECT_EQ(std::count(command.argv.begin(), command.argv.end(), "--tmpfs"), 0);
  EXPECT_TRUE(holds(command, {"type=bind,source=/y,target=/tmp,bind-propagation=rprivate"}));
  EXPECT_EQ(memory_targets(one), (std::vector<std::string>{"/dev/shm", "/dev/mqueue"}));
}

TEST(EngineCommand, ShowsMountsBelowAReadOnlyOneReadOnly) {
  const std::string info =
      "1 0 8:1 / / rw - ext4 x rw\n2 1 8:2 / /data/in\\040side rw - ext4 x rw\n"
      "3 1 8:3 / /other rw - ext4 x rw\n";
  const std::vector<std::string> mounted = mounted_folders(info);
  EXPECT_EQ(mounted, (std::vector<std::string>{"/", "/data/in side", "/other"}));
  const std::vector<Mount> mounts = with_mounts_below(
      {{"/data", "/d", true}, {"/other", "/o", true}, {"/data", "/w", false}}, mounted);
  ASSERT_EQ(mounts.size(), 4U);
  EXPECT_EQ(mounts[3].source, "/data/in side");
  EXPECT_EQ(mounts[3].target, "/d/in side");
  EXPECT_TRUE(mounts[3].read_only);
}

TEST(EngineCommand, RefusesLimitsThatAnEngineLeavesOut) {
  JobLimits limits;
  limits.memory_bytes = 1 << 30;
  ContainerEngine one = engine("podman");
  EXPECT_THROW(check_limits(one, limits), Error);
  one.controllers = {"memory"};
  check_limits(one, limits);
  one.swap_limit = true;
  EngineContainer limited = container();
  limited.options.limits = limits;
  EXPECT_TRUE(
      holds(run_command(one, limited), {"--memory", "1073741824", "--memory-swap", "2147483648"}));
}

TEST(EngineCommand, AsksForPrivateNetworksByTheirNames) {
  EngineContainer one = container();
  one.options.network = "private";
  one.options.ports = {{"127.0.0.1", 80, 8080, "tcp"}};
  EXPECT_TRUE(holds(run_command(engine("docker"), one),
                    {"--network", "bridge", "--publish", "127.0.0.1:80:8080/tcp"}));
  ContainerEngine rootless = engine("podman");
  rootless.rootless = true;
  EXPECT_TRUE(holds(run_command(rootless, one), {"--network", "slirp4netns"}));
  rootless.version = "5.4.0";
  EXPECT_TRUE(holds(run_command(rootless, one), {"--network", "pasta"}));
}

TEST(EngineCommand, PutsThrowawayLayersOverMounts) {
  EngineContainer one = container();
  one.mounts = {{"/data", "/d", false}};
  one.layers["/d"] = {"/data", "/s/upper", "/s/work", {}};
  EXPECT_TRUE(holds(run_command(engine("podman"), one),
                    {"--volume", "/data:/d:O,upperdir=/s/upper,workdir=/s/work"}));
  EXPECT_TRUE(holds(run_command(engine("docker"), one),
                    {"--mount",
                     "type=volume,target=/d,volume-driver=local,volume-opt=type=overlay,"
                     "volume-opt=device=overlay,"
                     "\"volume-opt=o=lowerdir=/data,upperdir=/s/upper,workdir=/s/work\""}));
  one.layers["/d"].source = "/with:colon";
  EXPECT_EQ(code_of([&] { (void)run_command(engine("podman"), one); }), "no-overlay");
}

TEST(EngineCommand, TellsPodmanItsRuntime) {
  ContainerEngine one = engine("podman");
  EXPECT_FALSE(holds(run_command(one, container()), {"--runtime"}));
  EXPECT_EQ(one.title(), "podman 4.3.1");
  one.oci_runtime = "/usr/sbin/runc";
  EXPECT_TRUE(holds(run_command(one, container()), {"podman", "--runtime", "/usr/sbin/runc"}));
  EXPECT_EQ(one.title(), "podman 4.3.1 with runc");
}

TEST(EngineCommand, HasAKeeper) {
  EXPECT_EQ(keeper_program().substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(render_hook({"createContainer", "/bin/x", {"x", "y"}, {}, std::nullopt}),
            R"({"hook":{"args":["x","y"],"path":"/bin/x"},"stages":["createContainer"],)"
            R"("version":"1.0.0","when":{"always":true}})");
}

}  // namespace
}  // namespace mlenv
