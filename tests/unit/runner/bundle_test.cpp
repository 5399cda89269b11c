#include "runner/local/bundle.hpp"

#include <sys/socket.h>
#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runner/local/devices.hpp"
#include "runner/local/seccomp.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

Bundle small() {
  Bundle bundle;
  bundle.id = bundle.group = "mlenv-1";
  bundle.root = "/overlay";
  bundle.argv = {"true"};
  bundle.workdir = "/";
  bundle.pid_namespace = "/proc/7/ns/pid";
  return bundle;
}

nlohmann::json rendered(const Bundle& bundle) {
  return nlohmann::json::parse(render_bundle(bundle));
}

std::vector<nlohmann::json> mounts_at(const nlohmann::json& config, const std::string& target) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& mount : config["mounts"]) {
    if (mount["destination"] == target) found.push_back(mount);
  }
  return found;
}

bool lists_word(const nlohmann::json& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// The action for a system call without regard to its arguments.
std::string action(const nlohmann::json& profile, const std::string& call) {
  for (const nlohmann::json& rule : profile["syscalls"]) {
    if (lists_word(rule["names"], call)) {
      return rule["action"].get<std::string>() +
             (rule.contains("errnoRet") ? "/" + rule["errnoRet"].dump() : "");
    }
  }
  return profile["defaultAction"];
}

TEST(Bundle, JoinsThePidNamespaceAndKeepsTheNetwork) {
  const nlohmann::json config = rendered(small());
  bool joined = false;
  for (const nlohmann::json& one : config["linux"]["namespaces"]) {
    EXPECT_NE(one["type"], "network");
    EXPECT_NE(one["type"], "user");
    if (one["type"] == "pid") joined = one["path"] == "/proc/7/ns/pid";
  }
  EXPECT_TRUE(joined);
}

TEST(Bundle, TheFolderIsEnteredByAProgramInTheContainerAndNotByTheRuntime) {
  Bundle bundle = small();
  bundle.workdir = "/proc/1/root";
  const nlohmann::json process = rendered(bundle)["process"];
  EXPECT_EQ(process["cwd"], "/");
  EXPECT_EQ(process["args"], (nlohmann::json{"/run/mlenv/keeper", "enter", "/run/mlenv/filter",
                                             "make", "/proc/1/root", "true"}));
  bundle.make_workdir = false;
  EXPECT_EQ(nlohmann::json::parse(render_process(bundle))["args"][3], "need");
}

TEST(Bundle, RootHasCgroupsAndDevicesOthersHaveNot) {
  Bundle bundle = small();
  EXPECT_FALSE(rendered(bundle)["linux"].contains("cgroupsPath"));
  EXPECT_TRUE(mounts_at(rendered(bundle), "/sys/fs/cgroup").empty());
  bundle.identity = Identity::root;
  const nlohmann::json config = rendered(bundle);
  EXPECT_EQ(config["linux"]["cgroupsPath"], "mlenv-1");  // relative: below our own cgroup
  EXPECT_EQ(config["linux"]["resources"]["devices"][0]["allow"], false);
}

TEST(Bundle, OptionsOfARun) {
  Bundle bundle = small();
  bundle.network_namespace = "/private/network";
  bundle.ulimits = {{"nofile", 10, 20}, {"memlock", {}, {}}};
  bundle.shm_bytes = 4096;
  bundle.read_only = true;
  const nlohmann::json config = rendered(bundle);
  EXPECT_EQ(config["linux"]["namespaces"].back(),
            (nlohmann::json{{"type", "network"}, {"path", "/private/network"}}));
  EXPECT_EQ(config["process"]["rlimits"][0],
            (nlohmann::json{{"type", "RLIMIT_NOFILE"}, {"soft", 10}, {"hard", 20}}));
  EXPECT_EQ(config["process"]["rlimits"][1]["hard"], UINT64_MAX);
  EXPECT_TRUE(lists_word(mounts_at(config, "/dev/shm").at(0)["options"], "size=4096"));
  EXPECT_EQ(config["root"]["readonly"], true);
  EXPECT_FALSE(rendered(small())["process"].contains("rlimits"));
}

TEST(Bundle, FoldersInMemoryTakeTheirPlaceAmongTheMounts) {
  Bundle bundle = small();
  bundle.mounts = {{"/host", "/run/mlenv", true}};
  for (const char* target : {"/run", "/tmp"}) {
    CdiMount folder;
    folder.path = target;
    folder.type = folder.host_path = "tmpfs";
    folder.options = {"size=1"};
    bundle.file_systems.push_back(folder);
  }
  const nlohmann::json config = rendered(bundle);
  ASSERT_EQ(mounts_at(config, "/tmp").size(), 1U);
  EXPECT_TRUE(lists_word(mounts_at(config, "/tmp")[0]["options"], "size=1"));
  std::vector<std::string> order;
  for (const nlohmann::json& mount : config["mounts"]) order.push_back(mount["destination"]);
  EXPECT_LT(std::find(order.begin(), order.end(), "/run"),
            std::find(order.begin(), order.end(), "/run/mlenv"));
}

// What an engine gets; the containers of OCI runtimes filter themselves (base/call_filter_test).
TEST(SeccompProfile, OwnersArePretendedWhereThatIsAskedFor) {
  EXPECT_EQ(action(seccomp_profile("amd64", true), "fchownat"), "SCMP_ACT_ERRNO/0");
  EXPECT_EQ(action(seccomp_profile("amd64", true), "setgroups"), "SCMP_ACT_ERRNO/0");
  EXPECT_EQ(action(seccomp_profile("amd64", false), "fchownat"), "SCMP_ACT_ALLOW");
}

TEST(SeccompProfile, RefusesWhatWouldLeaveTheContainer) {
  const nlohmann::json profile = seccomp_profile("amd64", false);
  EXPECT_EQ(profile["defaultErrnoRet"], ENOSYS);
  for (const char* call : {"mount", "umount2", "setns", "unshare", "bpf", "keyctl", "add_key",
                           "request_key", "init_module", "kexec_load", "reboot", "swapon",
                           "pivot_root", "perf_event_open", "userfaultfd", "open_by_handle_at"}) {
    EXPECT_EQ(action(profile, call), "SCMP_ACT_ERRNO/1") << call;
  }
  EXPECT_EQ(action(profile, "clone3"), "SCMP_ACT_ERRNO/" + std::to_string(ENOSYS));
  for (const char* call : {"io_uring_setup", "kexec_file_load", "finit_module", "acct"}) {
    EXPECT_EQ(action(profile, call), "SCMP_ACT_ERRNO") << call;
  }
  for (const char* call : {"read", "execve", "mmap", "futex", "get_mempolicy", "shmget", "mmap2"}) {
    EXPECT_EQ(action(profile, call), "SCMP_ACT_ALLOW") << call;
  }
}

TEST(SeccompProfile, SocketsOfTwoFamiliesAreRefusedWhateverTheUpperHalfSays) {
  const nlohmann::json profile = seccomp_profile("amd64", false);
  const auto answer_for = [&](std::uint64_t family) -> std::string {
    for (const nlohmann::json& rule : profile["syscalls"]) {
      if (!lists_word(rule["names"], "socket")) continue;
      const nlohmann::json& when = rule["args"].at(0);
      EXPECT_EQ(when["op"], "SCMP_CMP_MASKED_EQ");
      if ((family & when["value"].get<std::uint64_t>()) == when["valueTwo"].get<std::uint64_t>()) {
        return rule["action"];
      }
    }
    return "none";
  };
  for (const std::uint64_t upper : {std::uint64_t{0}, std::uint64_t{1} << 32U}) {
    for (const int family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG + 1}) {
      EXPECT_EQ(answer_for(upper | static_cast<std::uint64_t>(family)), "SCMP_ACT_ALLOW") << family;
    }
    for (const int family : {AF_ALG, AF_VSOCK}) {
      EXPECT_EQ(answer_for(upper | static_cast<std::uint64_t>(family)), "SCMP_ACT_ERRNO") << family;
    }
  }
}

TEST(SeccompProfile, ProgramsOf32BitsRun) {
  EXPECT_TRUE(lists_word(seccomp_profile("amd64", false)["architectures"], "SCMP_ARCH_X86"));
  EXPECT_TRUE(lists_word(seccomp_profile("arm64", false)["architectures"], "SCMP_ARCH_ARM"));
}

// The runtime would take milliseconds for one; and who starts the first program may not read it.
TEST(Bundle, TheFirstProgramFiltersItselfAndCannotBeLookedInto) {
  Bundle bundle = small();
  bundle.identity = Identity::root;
  const nlohmann::json config = rendered(bundle);
  EXPECT_FALSE(config["linux"].contains("seccomp"));
  EXPECT_TRUE(config["process"]["noNewPrivileges"]);
  const nlohmann::json& held = config["process"]["capabilities"];
  EXPECT_FALSE(lists_word(held["effective"], "CAP_DAC_OVERRIDE"));
  EXPECT_FALSE(lists_word(held["effective"], "CAP_DAC_READ_SEARCH"));
  EXPECT_FALSE(lists_word(held["bounding"], "CAP_SYS_PTRACE"));
  EXPECT_TRUE(lists_word(held["permitted"], "CAP_DAC_OVERRIDE"));
}

TEST(Bundle, RawPacketsNeedANetworkOfItsOwn) {
  Bundle bundle = small();
  EXPECT_FALSE(lists_word(rendered(bundle)["process"]["capabilities"]["bounding"], "CAP_NET_RAW"));
  EXPECT_TRUE(lists_word(rendered(bundle)["process"]["capabilities"]["bounding"], "CAP_CHOWN"));
  bundle.network_namespace = "/private/network";
  EXPECT_TRUE(lists_word(rendered(bundle)["process"]["capabilities"]["effective"], "CAP_NET_RAW"));
}

TEST(Bundle, AnAppArmorProfileWhereThereIsOne) {
  Bundle bundle = small();
  EXPECT_FALSE(rendered(bundle)["process"].contains("apparmorProfile"));
  bundle.apparmor_profile = "mlenv-container";
  EXPECT_EQ(rendered(bundle)["process"]["apparmorProfile"], "mlenv-container");
}

TEST(Bundle, OwnMountsReplaceDefaultsAndParentsComeFirst) {
  Bundle bundle = small();
  bundle.mounts = {{"/a", "/data/deep", true}, {"/b", "/tmp", false}, {"/c", "/data", false}};
  const nlohmann::json config = rendered(bundle);
  ASSERT_EQ(mounts_at(config, "/tmp").size(), 1U);
  EXPECT_EQ(mounts_at(config, "/tmp")[0]["source"], "/b");
  EXPECT_TRUE(lists_word(mounts_at(config, "/data/deep")[0]["options"], "rro"));
  EXPECT_FALSE(lists_word(mounts_at(config, "/data")[0]["options"], "rro"));
  std::vector<std::string> order;
  for (const nlohmann::json& mount : config["mounts"]) order.push_back(mount["destination"]);
  EXPECT_LT(std::find(order.begin(), order.end(), "/data"),
            std::find(order.begin(), order.end(), "/data/deep"));
}

TEST(Bundle, AUserWhoIsNotRootHoldsNoCapabilities) {
  Bundle bundle = small();
  bundle.identity = Identity::root;
  bundle.user.uid = 33;
  const nlohmann::json process = rendered(bundle)["process"];
  EXPECT_TRUE(process["capabilities"]["effective"].empty());
  EXPECT_TRUE(process["noNewPrivileges"]);
  EXPECT_FALSE(lists_word(process["capabilities"]["bounding"], "CAP_SYS_ADMIN"));
}

TEST(Bundle, RefusesWhatJsonCannotCarry) {
  Bundle bundle = small();
  bundle.argv = {"echo", "\xff"};
  EXPECT_EQ(code_of([&] { render_bundle(bundle); }), "bad-text");
}

TEST(Bundle, DevicesAreMadeByRootAndMountedForOthers) {
  CdiEdits edits;
  CdiNode zero;
  zero.path = "/dev/mine";
  zero.host_path = "/dev/zero";
  zero.permissions = "r";
  edits.nodes = {zero};
  edits.groups = {44};
  Bundle bundle = small();
  bundle.identity = Identity::root;
  bundle.user.uid = 1000;
  add_devices(edits, bundle);
  const nlohmann::json root = rendered(bundle);
  EXPECT_EQ(
      root["linux"]["devices"],
      nlohmann::json::parse(R"([{"path":"/dev/mine","type":"c","major":1,"minor":5,"uid":1000}])"));
  EXPECT_EQ(root["linux"]["resources"]["devices"][1],
            nlohmann::json::parse(R"({"allow":true,"type":"c","major":1,"minor":5,"access":"r"})"));
  EXPECT_EQ(root["process"]["user"]["additionalGids"], nlohmann::json::parse("[44]"));
  bundle = small();
  add_devices(edits, bundle);
  const nlohmann::json user = rendered(bundle);
  EXPECT_FALSE(user["linux"].contains("devices"));
  EXPECT_FALSE(user["process"]["user"].contains("additionalGids"));
  ASSERT_EQ(mounts_at(user, "/dev/mine").size(), 1U);
  EXPECT_EQ(mounts_at(user, "/dev/mine")[0]["source"], "/dev/zero");
  EXPECT_TRUE(lists_word(mounts_at(user, "/dev/mine")[0]["options"], "bind"));
  edits.nodes[0].type = "c";
  edits.nodes[0].major = 1;
  edits.nodes[0].minor = 3;
  EXPECT_EQ(code_of([&] { add_devices(edits, bundle); }), "stale-cdi");
}

}  // namespace
}  // namespace mlenv
