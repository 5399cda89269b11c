#include "builder/debian/install.hpp"

#include <gtest/gtest.h>
#include <algorithm>

#include "base/error.hpp"
#include "images/tree_writer.hpp"

namespace mlenv::debian {
namespace {

Package package(const std::string& name, const std::string& fields = {}) {
  Package result;
  result.fields = parse_stanza("Package: " + name + "\n" + fields);
  result.name = name;
  result.version = "1";
  result.architecture = "amd64";
  return result;
}

/// What each dpkg of the script is told to do: `unpack a b`, `configure a`.
std::vector<std::string> steps(const std::vector<Package>& packages) {
  std::vector<std::string> files;
  files.reserve(packages.size());
  for (const Package& one : packages) files.push_back(one.name);
  std::vector<std::string> found;
  std::string text = install_script(packages, files);
  std::erase(text, '\'');
  for (std::size_t at = 0; (at = text.find("dpkg ", at)) != std::string::npos; ++at) {
    const std::size_t end = text.find(" <", at);
    const std::string line = text.substr(at, end - at);
    const std::size_t action = std::min(line.find("--unpack"), line.find("--configure"));
    found.push_back(line.substr(action + 2));
  }
  return found;
}

TEST(DebianInstall, UnpacksAllAndThenConfiguresAll) {
  EXPECT_EQ(steps({package("app", "Depends: lib\n"), package("lib", "Multi-Arch: same\n")}),
            (std::vector<std::string>{"unpack lib app", "configure lib:amd64 app",
                                      "configure --pending"}));
}

TEST(DebianInstall, ConfiguresFirstWhatAPackageIsNotUnpackedWithout) {
  EXPECT_EQ(steps({package("a", "Pre-Depends: helper | other\n"), package("b", "Depends: a\n"),
                   package("helper", "Depends: libh\n"), package("libh"), package("c")}),
            (std::vector<std::string>{"unpack libh helper", "configure libh helper", "unpack a b c",
                                      "configure a b c", "configure --pending"}));
}

TEST(DebianInstall, PreDependenciesThatTheImageHasAreNoneOfOurs) {
  EXPECT_EQ(steps({package("a", "Pre-Depends: libc6 (>= 2), virtual\n"),
                   package("p", "Provides: virtual\n")}),
            (std::vector<std::string>{"unpack p", "configure p", "unpack a", "configure a",
                                      "configure --pending"}));
}

TEST(DebianInstall, NothingMayBeLeftInTheMiddle) {
  EXPECT_NO_THROW(require_installed(
      "Package: a\nStatus: hold ok installed\n\nPackage: b\nStatus: deinstall ok config-files\n"));
  try {
    require_installed(
        "Package: a\nStatus: install ok installed\n\n"
        "Package: b\nStatus: install ok half-configured\n");
    FAIL() << "it was taken as installed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "base-failed");
    EXPECT_NE(std::string(error.what()).find("`b`"), std::string::npos);
  }
}

TEST(DebianInstall, WhatTheImageHasOfAMachineStays) {
  const TemporaryFolder folder{temporary_root()};
  const auto write = [&](const char* tree, const char* path, std::string_view text) {
    make_folders((folder.path() / tree / path).parent_path());
    write_file(folder.path() / tree / path, text);
  };
  write("below", "etc/machine-id", "0123");
  write("below", "var/log/wtmp", "kept");
  write("upper", "etc/machine-id", "4567");
  write("upper", "var/log/wtmp", "");
  write("upper", "var/log/btmp", "new");
  write("upper", "var/log/alternatives.log", "dated");
  write("upper", "var/lib/dpkg/status-old", "old");
  write("upper", "var/lib/dpkg/status", "new");
  LayerStack below{{folder.path() / "below"}};
  const fs::path upper = folder.path() / "upper";
  normalise_changes(upper, below);
  EXPECT_FALSE(fs::exists(upper / "etc/machine-id"));
  EXPECT_FALSE(fs::exists(upper / "var/log/wtmp"));
  EXPECT_EQ(read_file(upper / "var/log/btmp"), "");
  EXPECT_FALSE(fs::exists(upper / "var/log/alternatives.log"));
  EXPECT_FALSE(fs::exists(upper / "var/lib/dpkg/status-old"));
  EXPECT_EQ(read_file(upper / "var/lib/dpkg/status"), "new");
}

TEST(DebianInstall, AFolderThatBecameALinkIsNotCleaned) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path upper = folder.path() / "upper";
  make_folders(upper / "var");
  make_folders(folder.path() / "outside");
  write_file(folder.path() / "outside/a.log", "x");
  fs::create_directory_symlink(folder.path() / "outside", upper / "var/log");
  LayerStack below{{}};
  EXPECT_THROW(normalise_changes(upper, below), Error);
  EXPECT_TRUE(fs::exists(folder.path() / "outside/a.log"));
}

}  // namespace
}  // namespace mlenv::debian
