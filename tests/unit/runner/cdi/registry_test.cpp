#include "runner/cdi/registry.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class CdiRegistryTest : public testing::Test {
 protected:
  CdiRegistryTest() : folder_(temporary_root()) {
    make_folders(low());
    make_folders(high());
  }
  fs::path low() const { return folder_.path() / "etc"; }
  fs::path high() const { return folder_.path() / "run"; }
  CdiRegistry registry() const { return CdiRegistry{{low(), high(), folder_.path() / "absent"}}; }
  static void write(const fs::path& file, const std::string& kind, const std::string& devices) {
    write_file(file, "cdiVersion: 0.5.0\nkind: " + kind + "\ncontainerEdits: {env: [OF=" + kind +
                         "]}\ndevices:\n" + devices);
  }
  static std::string device(const std::string& name, const std::string& path) {
    return "- {name: \"" + name + "\", containerEdits: {deviceNodes: [{path: " + path + "}]}}\n";
  }
  TemporaryFolder folder_;
};

std::string why(const CdiRegistry& registry, const CdiName& name) {
  try {
    (void)registry.edits({name});
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST_F(CdiRegistryTest, TheLaterFolderCounts) {
  write(low() / "a.yaml", "v.com/d", device("0", "/dev/zero") + device("1", "/dev/null"));
  write(high() / "b.json", "v.com/d", device("0", "/dev/full"));
  write(low() / "c.txt", "v.com/other", device("0", "/dev/zero"));
  const CdiRegistry all = registry();
  EXPECT_TRUE(all.has("v.com/d"));
  EXPECT_FALSE(all.has("v.com/other"));
  const CdiEdits edits = all.edits({{"v.com/d", "1"}, {"v.com/d", "0"}});
  ASSERT_EQ(edits.nodes.size(), 2U);
  EXPECT_EQ(edits.nodes[0].path, "/dev/null");
  EXPECT_EQ(edits.nodes[1].path, "/dev/full");
  EXPECT_EQ(edits.env.size(), 2U);  // two files
  EXPECT_EQ(all.edits({{"v.com/d", "1"}, {"v.com/d", "1"}}).env.size(), 1U);
}

TEST_F(CdiRegistryTest, SortsNamesByNumber) {
  write(low() / "a.yaml", "v.com/d",
        device("10", "/dev/zero") + device("all", "/dev/zero") + device("2", "/dev/zero") +
            device("1:0", "/dev/zero"));
  EXPECT_EQ(registry().names("v.com/d"), (std::vector<std::string>{"1:0", "2", "10", "all"}));
}

TEST_F(CdiRegistryTest, SaysWhatThereIs) {
  write(low() / "a.yaml", "v.com/d", device("0", "/dev/zero") + device("all", "/dev/zero"));
  EXPECT_EQ(why(registry(), {"v.com/d", "3"}),
            "there is no device `v.com/d=3`: of `v.com/d` there are: 0, all");
  EXPECT_EQ(
      why(registry(), {"w.com/d", "3"}),
      "there is no device `w.com/d=3`: no CDI specification in /etc/cdi or /var/run/cdi is of "
      "`w.com/d`");
}

TEST_F(CdiRegistryTest, ABrokenFileMeetsOnlyWhoAsksForIt) {
  write(low() / "a.yaml", "v.com/d", device("0", "/dev/zero"));
  write_file(low() / "b.yaml", "kind: w.com/d\n");
  EXPECT_EQ(registry().edits({{"v.com/d", "0"}}).nodes.size(), 1U);
  EXPECT_NE(why(registry(), {"w.com/d", "0"}).find("b.yaml:1:1: a CDI specification lacks"),
            std::string::npos);
  EXPECT_EQ(code_of([&] { (void)registry().names("w.com/d"); }), "bad-cdi");
}

TEST_F(CdiRegistryTest, RefusesTwoFilesOfOneFolder) {
  write(low() / "a.yaml", "v.com/d", device("0", "/dev/zero"));
  write(low() / "b.yaml", "v.com/d", device("0", "/dev/null"));
  EXPECT_EQ(code_of([&] { (void)registry().edits({{"v.com/d", "0"}}); }), "bad-cdi");
}

TEST_F(CdiRegistryTest, WhatIsGoneIsToldBeforeTheStart) {
  write(low() / "a.yaml", "v.com/d",
        "- {name: node, containerEdits: {deviceNodes: [{path: /dev/no-such}]}}\n"
        "- {name: made, containerEdits: {deviceNodes: [{path: /dev/no-such, type: c, major: 1, "
        "minor: 5}]}}\n"
        "- {name: mount, containerEdits: {mounts: [{hostPath: /no-such, containerPath: /a}]}}\n"
        "- {name: tmpfs, containerEdits: {mounts: [{hostPath: tmpfs, containerPath: /a, type: "
        "tmpfs}]}}\n"
        "- {name: hook, containerEdits: {hooks: [{hookName: prestart, path: /no-such}]}}\n");
  const CdiRegistry all = registry();
  for (const char* name : {"node", "mount", "hook"}) {
    EXPECT_EQ(code_of([&] { (void)all.edits({{"v.com/d", name}}); }), "stale-cdi") << name;
  }
  for (const char* name : {"made", "tmpfs"}) {
    EXPECT_NO_THROW((void)all.edits({{"v.com/d", name}})) << name;
  }
}

}  // namespace
}  // namespace mlenv
