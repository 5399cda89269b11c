#include "runner/cdi/spec.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kYaml = R"(---
cdiVersion: 0.5.0
kind: vendor.com/device
containerEdits:
  env: [A=1, "B=two words"]
  hooks:
    - hookName: createContainer
      path: /usr/bin/nvidia-ctk
      args: [nvidia-ctk, hook, update-ldcache, --folder, /usr/lib64]
      env: [DEBUG=]
      timeout: 5
  additionalGids: [44]
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - path: /dev/vendor0
          hostPath: /dev/zero
          type: c
          major: 1
          minor: 5
          fileMode: 0666
          permissions: rw
          uid: 7
          gid: 8
        - {path: /dev/fuse}
      mounts:
        - hostPath: /etc/hostname
          containerPath: /etc/vendor
          options: [ro, bind]
        - {hostPath: tmpfs, containerPath: /vendor, type: tmpfs, options: [size=1m]}
  - name: all
)";

constexpr std::string_view kJson = R"({
	"cdiVersion": "0.6.0", "kind": "vendor.com/device", "annotations": {"a": "b"},
	"devices": [
		{"name": "zero", "annotations": {},
		 "containerEdits": {"deviceNodes": [{"path": "\/dev\/z\u0065ro", "fileMode": 438}]}}
	],
	"containerEdits": {}
})";

std::string spec_complaint(std::string_view text) {
  try {
    (void)parse_cdi_spec(text, "vendor.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-cdi");
    EXPECT_EQ(error.kind(), Kind::usage);
    return error.frames().front();
  }
  return "none";
}

TEST(CdiSpec, ReadsYaml) {
  const CdiSpec spec = parse_cdi_spec(kYaml, "vendor.yaml");
  EXPECT_EQ(spec.shown, "vendor.yaml");
  EXPECT_EQ(spec.kind, "vendor.com/device");
  EXPECT_EQ(spec.edits.env, (std::vector<std::string>{"A=1", "B=two words"}));
  EXPECT_EQ(spec.edits.groups, (std::vector<std::uint64_t>{44}));
  ASSERT_EQ(spec.edits.hooks.size(), 1U);
  const CdiHook& hook = spec.edits.hooks.front();
  EXPECT_EQ(hook.when, "createContainer");
  EXPECT_EQ(hook.argv.size(), 5U);
  EXPECT_EQ(hook.env, (std::vector<std::string>{"DEBUG="}));
  EXPECT_EQ(hook.timeout_seconds, 5U);
  ASSERT_EQ(spec.devices.size(), 2U);
  const CdiDevice* const device = spec.find("0");
  ASSERT_NE(device, nullptr);
  ASSERT_EQ(device->edits.nodes.size(), 2U);
  const CdiNode expected{"/dev/vendor0", "/dev/zero", "c", 1, 5, 0666, "rw", 7, 8};
  EXPECT_EQ(device->edits.nodes[0], expected);
  EXPECT_EQ(device->edits.nodes[0].on_host(), "/dev/zero");
  EXPECT_EQ(device->edits.nodes[1].on_host(), "/dev/fuse");
  EXPECT_FALSE(device->edits.nodes[1].major);
  const CdiMount mount{"/etc/hostname", "/etc/vendor", "", {"ro", "bind"}};
  EXPECT_EQ(device->edits.mounts.at(0), mount);
  EXPECT_EQ(device->edits.mounts.at(1).type, "tmpfs");
  EXPECT_EQ(spec.find("1"), nullptr);
}

TEST(CdiSpec, ReadsJson) {
  const CdiSpec spec = parse_cdi_spec(kJson, "vendor.json");
  const CdiDevice* const device = spec.find("zero");
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->edits.nodes.at(0).path, "/dev/zero");
  EXPECT_EQ(device->edits.nodes.at(0).mode, 0666U);
}

TEST(CdiSpec, NamesEveryMistakeAtItsPlace) {
  EXPECT_EQ(spec_complaint("cdiVersion: 0.5.0\nkind: v.com/d\ndevices: [{name: a}]\nmount: []\n"),
            "vendor.yaml:4:1: a CDI specification has no member `mount`\n    mount: []\n    ^");
  EXPECT_EQ(spec_complaint("cdiVersion: 9.0.0\nkind: device\ndevices:\n  - name: a/b\n  - x: 1\n"),
            "vendor.yaml:1:13: mlenv reads versions 0.3.0 to 1.1.0 of CDI, not `9.0.0`\n"
            "    cdiVersion: 9.0.0\n                ^\n"
            "vendor.yaml:2:7: `device` is not `VENDOR/CLASS`\n    kind: device\n          ^\n"
            "vendor.yaml:4:11: `a/b` is no name of a device\n      - name: a/b\n              ^\n"
            "vendor.yaml:5:5: a device has no member `x`\n      - x: 1\n        ^\n"
            "vendor.yaml:5:5: a device lacks `name`\n      - x: 1\n        ^");
  EXPECT_NE(spec_complaint("{\"cdiVersion\": \"0.5.0\",\n \"kind\": [}").find("vendor.yaml:2:"),
            std::string::npos);
  EXPECT_EQ(spec_complaint("").substr(0, 14), "vendor.yaml:1:");
}

TEST(CdiSpec, RefusesWhatAContainerCouldNotBeGiven) {
  const auto of_edits = [](const std::string& edits) {
    const std::string text = spec_complaint(
        "cdiVersion: 0.7.0\nkind: v.com/d\ndevices:\n- name: a\n  containerEdits: " + edits + "\n");
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(of_edits("{env: [A]}"), "vendor.yaml:5:26: a variable is `NAME=VALUE`");
  EXPECT_EQ(of_edits("{env: A=1}"), "vendor.yaml:5:25: `env` is a list");
  EXPECT_EQ(of_edits("{deviceNodes: [{path: dev}]}"),
            "vendor.yaml:5:41: `path` is an absolute path");
  EXPECT_EQ(of_edits("{deviceNodes: [{path: /dev/a, type: x}]}"),
            "vendor.yaml:5:55: `type` is `b`, `c`, `u` or `p`");
  EXPECT_EQ(of_edits("{deviceNodes: [{path: /dev/a, major: -1}]}"),
            "vendor.yaml:5:56: `major` is a whole number, from 0 to 4294967295");
  EXPECT_EQ(of_edits("{mounts: [{hostPath: /a}]}"),
            "vendor.yaml:5:29: a mount lacks `containerPath`");
  EXPECT_EQ(of_edits("{hooks: [{hookName: createContainers, path: /a}]}"),
            "vendor.yaml:5:39: no runtime has a hook `createContainers`; did you mean "
            "`createContainer`?");
  EXPECT_EQ(of_edits("{intelRdt: {closID: x}}"), "vendor.yaml:5:20: mlenv cannot apply `intelRdt`");
}

TEST(CdiName, IsTakenApart) {
  const auto name = parse_cdi_name("nvidia.com/gpu=GPU-1a:0");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->kind, "nvidia.com/gpu");
  EXPECT_EQ(name->device, "GPU-1a:0");
  for (const char* text :
       {"", "gpu", "nvidia.com=0", "nvidia.com/gpu=", "a/b=-", "/b=c", "a/1=c"}) {
    EXPECT_FALSE(parse_cdi_name(text)) << text;
  }
}

}  // namespace
}  // namespace mlenv
