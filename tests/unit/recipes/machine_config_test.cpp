#include "recipes/machine_config.hpp"

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

TEST(MachineConfig, MirrorsAndSnapshots) {
  const MachineConfig config = parse_config(
      "mirrors:\n"
      "  r.example: [https://near.example:5000/proxy/, http://plain.example]\n"
      "  s.example:5000/team: bare.example\n"
      "snapshots: https://snapshot.example/{sha256}\n"
      "cuda-index: https://mirror.example/cuda\n",
      "config.yaml");
  ASSERT_EQ(config.mirrors.size(), 2U);
  EXPECT_EQ(config.mirrors[0].prefix, "r.example");
  EXPECT_EQ(config.mirrors[0].mirrors,
            (std::vector<RegistryMirror>{
                {"near.example:5000/proxy", false, false, RegistryMirror::Use::all},
                {"plain.example", false, true, RegistryMirror::Use::all}}));
  EXPECT_EQ(config.mirrors[1].mirrors.at(0).location, "bare.example");
  EXPECT_EQ(config.snapshots, std::vector<std::string>{"https://snapshot.example/{sha256}"});
  EXPECT_EQ(config.cuda_index, "https://mirror.example/cuda");
  EXPECT_EQ(parse_config("", "config.yaml"), MachineConfig{});
  EXPECT_EQ(read_config("/nowhere/config.yaml"), MachineConfig{});
}

TEST(MachineConfig, AllMistakesWithTheirPlaces) {
  const auto read = [] {
    parse_config(
        "mirors: {}\n"
        "mirrors:\n"
        "  r.example: [ftp://near.example]\n"
        "  Not a host: [https://near.example]\n"
        "snapshots: [snapshot.example, 'https://s.example/{sha1}']\n",
        "config.yaml");
  };
  EXPECT_EQ(code_of(read), "config-invalid");
  const std::string said = error_of(read).what();
  for (const char* part :
       {"config.yaml:1:1: unknown key `mirors`; did you mean `mirrors`?",
        "config.yaml:3:15:", "config.yaml:4:15:", "config.yaml:5:13:", "config.yaml:5:31:"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << " in\n" << said;
  }
}

TEST(MachineConfig, StorageHasNames) {
  EXPECT_EQ(parse_config("storage: {scratch: /mnt/scratch, home: {path: /nfs/home}}", "c").storage,
            (StorageNames{{"home", "/nfs/home"}, {"scratch", "/mnt/scratch"}}));
  for (const char* text : {"storage: {a: b}", "storage: {a: /b/}", "storage: {a: /}",
                           "storage: {a: '/b:c'}", "storage: {'a b': /c}", "storage: {a: {}}",
                           "storage: {a: {path: /b, more: x}}", "storage: {a: }", "storage: x"}) {
    EXPECT_EQ(code_of([&] { (void)parse_config(text, "c"); }), "config-invalid") << text;
  }
}

TEST(MachineConfig, TheUsersComesOverTheMachines) {
  const TemporaryFolder root{temporary_root()};
  make_folders(root.path() / "etc/mlenv");
  make_folders(root.path() / "own/mlenv");
  write_file(root.path() / "etc/mlenv/config.yaml",
             "storage: {scratch: /mnt/scratch, home: /nfs/home}\n"
             "mirrors: {a.example: m.example, b.example: m.example}\n"
             "snapshots: https://s.example\ncuda-index: /cuda\n");
  write_file(root.path() / "own/mlenv/config.yaml",
             "storage: {scratch: /fast}\nmirrors: {b.example: own.example}\n"
             "snapshots: https://own.example\n");
  const MachineConfig both = read_machine_config({root.path(), {}, root.path() / "own", {}});
  EXPECT_EQ(both.storage, (StorageNames{{"home", "/nfs/home"}, {"scratch", "/fast"}}));
  ASSERT_EQ(both.mirrors.size(), 2U);
  EXPECT_EQ(both.mirrors[1].mirrors.at(0).location, "own.example");
  EXPECT_EQ(both.snapshots, (std::vector<std::string>{"https://own.example", "https://s.example"}));
  EXPECT_EQ(both.cuda_index, "/cuda");
  EXPECT_EQ(read_machine_config({root.path(), {}, {}, {}}).storage.size(), 2U);
  EXPECT_EQ(read_registry_hosts({root.path(), {}, {}, {}}).rules.at(0).size(), 2U);
}

TEST(MachineConfig, RegistriesConf) {
  const std::vector<RegistryRule> rules = parse_registries_conf(
      "unqualified-search-registries = ['r.example']\n"
      "[[registry]]\n"
      "prefix = 'r.example/team'\n"
      "location = 'other.example/team'\n"
      "[[registry.mirror]]\n"
      "location = 'near.example'\n"
      "insecure = true\n"
      "[[registry.mirror]]\n"
      "location = 'tags.example'\n"
      "pull-from-mirror = 'tag-only'\n"
      "[[registry]]\n"
      "location = 'bad.example'\n"
      "blocked = true\n"
      "[[registry]]\n"
      "location = 'd.example'\n"
      "mirror-by-digest-only = true\n"
      "mirror = [{ location = 'm.example' }]\n",
      "registries.conf");
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].prefix, "r.example/team");
  EXPECT_EQ(rules[0].location, "other.example/team");
  EXPECT_EQ(rules[0].mirrors, (std::vector<RegistryMirror>{
                                  {"near.example", true, false, RegistryMirror::Use::all},
                                  {"tags.example", false, false, RegistryMirror::Use::tags}}));
  EXPECT_TRUE(rules[1].blocked);
  EXPECT_EQ(rules[1].location, "");
  EXPECT_EQ(rules[2].mirrors.at(0).use, RegistryMirror::Use::digests);
  EXPECT_EQ(code_of([] { parse_registries_conf("[[registry]]\nblocked = true\n", "r.conf"); }),
            "config-invalid");
  EXPECT_EQ(code_of([] { parse_registries_conf("[[registry\n", "r.conf"); }), "config-invalid");
  EXPECT_EQ(code_of([] {
              parse_registries_conf(
                  "[[registry]]\nlocation='r'\nmirror=[{location='m',pull-from-mirror='x'}]", "r");
            }),
            "config-invalid");
}

TEST(MachineConfig, HostsToml) {
  const RegistryRule rule = parse_hosts_toml(
      "server = 'https://r.example'\n"
      "[host.'https://z.example']\n"
      "  capabilities = ['pull', 'resolve']\n"
      "[host.'http://b.example:5000']\n"
      "  capabilities = ['pull']\n"
      "[host.'https://harbor.example/v2/proxy']\n"
      "  override_path = true\n"
      "  skip_verify = true\n"
      "[host.'https://odd.example/some/path']\n"
      "[host.'https://push.example']\n"
      "  capabilities = ['push']\n",
      "r.example", "hosts.toml");
  EXPECT_EQ(rule.prefix, "r.example");
  EXPECT_EQ(rule.location, "");
  EXPECT_EQ(rule.mirrors,
            (std::vector<RegistryMirror>{
                {"z.example", false, false, RegistryMirror::Use::all},
                {"b.example:5000", false, true, RegistryMirror::Use::digests},
                {"harbor.example/proxy", false, false, RegistryMirror::Use::all, true}}));
}

TEST(MachineConfig, TheUsersFilesAndTheMachines) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path root = folder.path() / "root";
  const fs::path home = folder.path() / "home";
  const auto put = [](const fs::path& path, std::string_view text) {
    make_folders(path.parent_path());
    write_file(path, text);
  };
  put(root / "etc/containers/registries.conf", "[[registry]]\nlocation = 'a.example'\n");
  put(root / "etc/containers/registries.conf.d/1.conf",
      "[[registry]]\nlocation = 'b.example'\nblocked = true\n");
  put(home / ".config/containers/registries.conf.d/2.conf",
      "[[registry]]\nlocation = 'b.example'\n");
  put(root / "etc/containerd/certs.d/c.example:5000/hosts.toml", "[host.'https://m.example']\n");
  put(root / "etc/containerd/certs.d/_default/hosts.toml", "[host.'https://m.example']\n");
  put(home / ".config/mlenv/config.yaml", "mirrors: {d.example: m.example}\n");
  const MachineFolders folders{root, home, home / ".config", ""};
  RegistryHosts hosts = read_registry_hosts(folders);
  ASSERT_EQ(hosts.rules.size(), 3U);
  EXPECT_EQ(hosts.rules[0].at(0).prefix, "d.example");
  ASSERT_EQ(hosts.rules[1].size(), 2U);
  EXPECT_EQ(hosts.rules[1][0].prefix, "a.example");
  EXPECT_FALSE(hosts.rules[1][1].blocked);
  ASSERT_EQ(hosts.rules[2].size(), 1U);
  EXPECT_EQ(hosts.rules[2][0].prefix, "c.example:5000");
  EXPECT_EQ(hosts.certificates.size(), 4U);
  put(home / ".config/containers/registries.conf", "[[registry]]\nlocation = 'own.example'\n");
  EXPECT_EQ(read_registry_hosts(folders).rules[1][0].prefix, "own.example");
  put(folder.path() / "given.conf", "[[registry]]\nlocation = 'given.example'\n");
  EXPECT_EQ(read_registry_hosts({root, home, home / ".config", folder.path() / "given.conf"})
                .rules[1][0]
                .prefix,
            "given.example");
}

}  // namespace
}  // namespace mlenv
