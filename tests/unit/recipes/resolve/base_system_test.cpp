#include "recipes/resolve/base_system.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

class BaseSystemTest : public testing::Test {
 protected:
  void add(const std::string& path, std::string_view text, bool program = false) const {
    make_folders((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text);
    if (program) fs::permissions(folder_.path() / path, fs::perms::owner_all);
  }
  /// A small Debian of no packages.
  void add_debian() const {
    add("etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n");
    add("var/lib/dpkg/status", "");
    add("usr/bin/dpkg", "elf", true);
    add("bin/sh", "elf", true);
  }
  std::variant<BaseSystem, std::string> read() const {
    return read_base_system(StackedTrees{{folder_.path()}}, "amd64");
  }
  std::string refusal() const {
    const auto answer = read();
    const auto* why = std::get_if<std::string>(&answer);
    return why == nullptr ? "" : *why;
  }
  Recipe recipe() const {
    Recipe recipe;
    recipe.distribution = "debian";
    recipe.suite = "bookworm";
    return recipe;
  }

  TemporaryFolder folder_{temporary_root()};
};

constexpr std::string_view kStanzas = R"(Package: one
Status: install ok installed
Priority: optional
Architecture: amd64
Version: 1
Depends: two (>= 1),
 three
Conffiles:
 /etc/one 0123
Description: short
 Package: not-one

Package: two
Status: hold ok triggers-awaited
Architecture: all
Version: 2

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 3

Package: foreign
Status: install ok installed
Architecture: i386
Version: 4

Package: never
Status: unknown ok not-installed
)";

TEST_F(BaseSystemTest, InstalledIsWhatDpkgCallsSo) {
  const auto read = installed_packages(kStanzas, "amd64");
  const auto& found = std::get<InstalledPackages>(read);
  EXPECT_EQ(found.stanzas,
            "Package: one\nPriority: optional\nArchitecture: amd64\nVersion: 1\n"
            "Depends: two (>= 1),\n three\n\nPackage: two\nArchitecture: all\nVersion: 2\n\n");
  EXPECT_EQ(found.held, std::set<std::string>{"two"});
}

TEST_F(BaseSystemTest, WhatDpkgLeftInTheMiddleIsTold) {
  const auto read = installed_packages(
      "Package: bad\nStatus: install reinstreq half-installed\nVersion: 1\n", "amd64");
  EXPECT_EQ(std::get<std::string>(read),
            "dpkg left its package `bad` as `install reinstreq half-installed`");
}

TEST_F(BaseSystemTest, WhatIsNoDebianIsRefusedInOneSentence) {
  EXPECT_EQ(refusal(), "its files hold no /var/lib/dpkg/status");
  add("etc/os-release", "ID=alpine\n");
  EXPECT_EQ(refusal(), "its os-release says `alpine`, and it has no /var/lib/dpkg/status");
  add("var/lib/dpkg/status.d/base", "Package: base-files\n");
  EXPECT_NE(refusal().find("distroless"), std::string::npos) << refusal();
  add("var/lib/dpkg/status", "");
  EXPECT_NE(refusal().find("not the programs"), std::string::npos) << refusal();
  add_debian();
  EXPECT_EQ(refusal(), "");
  add("etc/os-release", "ID=debian\n");
  EXPECT_EQ(refusal(), "its os-release names no VERSION_CODENAME");
  add("etc/os-release", "ID=kali\nID_LIKE=debian\nVERSION_CODENAME=rolling\n");
  EXPECT_EQ(refusal(), "its os-release says `ID=kali`, which is neither Debian nor Ubuntu");
}

TEST_F(BaseSystemTest, ItsAptsSourcesAreTakenWithTheKeysThatAptTrusts) {
  add_debian();
  add("etc/apt/sources.list.d/debian.sources",
      "Types: deb\nURIs: http://a.example/debian\nSuites: bookworm bookworm-updates\n"
      "Components: main\nSigned-By: /usr/share/keyrings/../keyrings/archive.gpg\n");
  add("etc/apt/sources.list.d/cuda.list",
      "deb [signed-by=/opt/keys/cuda.asc] http://cuda.example/repo any main\n"
      "deb http://flat.example/repo ./\n");
  add("etc/apt/sources.list.d/old.list", "deb http://old.example/repo any own\n");
  add("usr/share/keyrings/archive.gpg", "archive");
  add("opt/keys/cuda.asc", "cuda");
  add("etc/apt/trusted.gpg.d/trusted.gpg", "trusted");
  add("etc/apt/trusted.gpg.d/README", "no keyring");
  const auto answer = read();
  const auto& system = std::get<BaseSystem>(answer);
  const fs::path settings = system.settings->path();
  const BaseSources found = base_sources(recipe(), settings, {});
  EXPECT_TRUE(found.hold_suite);
  ASSERT_EQ(found.sources.size(), 4U);
  EXPECT_EQ(found.sources[0].suite, "any");
  EXPECT_EQ(read_file(found.sources[0].signed_by), "cuda");
  EXPECT_EQ(found.sources[1].suite, "bookworm");
  EXPECT_EQ(read_file(found.sources[1].signed_by), "archive");
  EXPECT_EQ(found.sources[1].origin, "");
  EXPECT_EQ(found.sources[2].suite, "bookworm-updates");
  ASSERT_EQ(list_folder(found.sources[3].signed_by).size(), 1U) << "keyrings alone";
  EXPECT_EQ(read_file(list_folder(found.sources[3].signed_by)[0]), "trusted");
}

TEST_F(BaseSystemTest, WithoutKeysOnlyTheDistributionsOwnIsTaken) {
  add_debian();
  add("etc/apt/sources.list",
      "deb http://a.example/debian bookworm main\ndeb http://other.example/x any own\n");
  const auto answer = read();
  const auto& system = std::get<BaseSystem>(answer);
  Recipe on = recipe();
  on.system = {{"git/bookworm-backports", 1, 1}};
  const BaseSources found = base_sources(on, system.settings->path(), {});
  ASSERT_EQ(found.sources.size(), 2U);
  EXPECT_EQ(found.sources[0].uris.front(), "http://a.example/debian");
  EXPECT_TRUE(found.sources[0].signed_by.empty());
  EXPECT_EQ(found.sources[1].suite, "bookworm-backports");
}

TEST_F(BaseSystemTest, OtherSourcesComeFirst) {
  add_debian();
  add("etc/apt/sources.list", "deb http://a.example/debian bookworm main\n");
  const auto answer = read();
  const fs::path settings = std::get<BaseSystem>(answer).settings->path();
  EXPECT_TRUE(base_sources(recipe(), settings, "/named/by/the/variable").sources.empty());
  Recipe on = recipe();
  on.sources.debian.push_back({"http://own.example/debian", "bookworm", {}, {}, true});
  EXPECT_TRUE(base_sources(on, settings, {}).sources.empty());
  on.sources.debian[0].suite = "extra";
  const BaseSources both = base_sources(on, settings, {});
  ASSERT_EQ(both.sources.size(), 2U);
  EXPECT_EQ(both.sources[1].suite, "extra");
}

TEST_F(BaseSystemTest, AnImageWithoutSourcesHoldsNoSuite) {
  add_debian();
  const auto answer = read();
  const BaseSources found =
      base_sources(recipe(), std::get<BaseSystem>(answer).settings->path(), {});
  EXPECT_FALSE(found.hold_suite);
  EXPECT_TRUE(found.sources.empty());
}

}  // namespace
}  // namespace mlenv
