#include "builder/debian.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <algorithm>

#include "base/error.hpp"
#include "builder/debian/database.hpp"
#include "builder/debian/diversions.hpp"
#include "builder/debian/normalise.hpp"
#include "builder/debian/order.hpp"
#include "builder/debian/output.hpp"
#include "builder/debian/package.hpp"
#include "builder/debian/tree.hpp"

namespace mlenv::debian {
namespace {

using namespace std::chrono_literals;

Package deb_package(const std::string& name, const std::string& fields = {}) {
  Package result;
  result.stanza = "Package: " + name + "\nArchitecture: all\nVersion: 1\n" + fields;
  result.fields = parse_stanza(result.stanza);
  result.name = name;
  result.version = "1";
  result.architecture = "all";
  return result;
}

std::vector<std::string> names(const std::vector<Package>& packages,
                               const std::vector<std::size_t>& indexes) {
  std::vector<std::string> result;
  result.reserve(indexes.size());
  for (const std::size_t i : indexes) result.push_back(packages[i].name);
  return result;
}

TEST(DebianStanza, FoldsContinuationLines) {
  const Fields fields =
      parse_stanza("Package: a\nDescription: short\n long\n .\nMulti-Arch: same\n");
  EXPECT_EQ(fields.at("package"), "a");
  EXPECT_EQ(fields.at("description"), "short\nlong\n.");
  EXPECT_EQ(fields.at("multi-arch"), "same");
}

TEST(DebianStanza, ReadsRelations) {
  const std::vector<std::vector<std::string>> expected{{"a", "b"}, {"c"}, {"d"}};
  EXPECT_EQ(parse_relation("a (>= 1:2~3) | b:any , c [amd64],\n d<!nocheck>"), expected);
  EXPECT_TRUE(parse_relation("").empty());
}

TEST(DebianPackage, NamesItsRecords) {
  Package library = deb_package("libx", "Multi-Arch: same\n");
  library.architecture = "amd64";
  EXPECT_EQ(library.info_name(), "libx:amd64");
  EXPECT_EQ(deb_package("x", "Multi-Arch: foreign\n").info_name(), "x");
  library.control["conffiles"].text = "/etc/a\nremove-on-upgrade /etc/b\n/etc/c\n";
  EXPECT_EQ(library.conffiles(), (std::vector<std::string>{"/etc/a", "/etc/c"}));
}

TEST(DebianOrder, PutsEssentialAndDependenciesFirst) {
  const std::vector<Package> packages{deb_package("app", "Depends: mta | other, zlib (>= 1)\n"),
                                      deb_package("bash", "Essential: yes\nPre-Depends: libc\n"),
                                      deb_package("exim", "Provides: mta (= 1)\n"),
                                      deb_package("libc"), deb_package("zlib")};
  const Order order = order_of(packages);
  EXPECT_EQ(names(packages, order.essential), (std::vector<std::string>{"libc", "bash"}));
  EXPECT_EQ(names(packages, order.rest), (std::vector<std::string>{"exim", "zlib", "app"}));
}

TEST(DebianOrder, DoesNotDependOnTheOrderGivenAndCutsCircles) {
  std::vector<Package> packages{deb_package("a", "Depends: b\n"), deb_package("b", "Depends: c\n"),
                                deb_package("c", "Depends: a\n")};
  const auto first = names(packages, order_of(packages).all());
  EXPECT_EQ(first, (std::vector<std::string>{"c", "b", "a"}));
  std::ranges::reverse(packages);
  EXPECT_EQ(names(packages, order_of(packages).all()), first);
}

TEST(DebianOutput, NamesThePackageTheReasonAndTheLastLines) {
  const Error error = configuration_error(
      "Setting up fine (1) ...\nSetting up bad (2) ...\nno such thing: x\n"
      "dpkg: error processing package bad (--configure):\n"
      " installed bad package post-installation script subprocess returned error exit status 1\n"
      "Errors were encountered while processing:\n bad\n",
      1);
  EXPECT_EQ(error.code(), "base-failed");
  ASSERT_EQ(error.frames().size(), 3U);
  EXPECT_EQ(error.frames()[0], "cannot configure the package `bad`");
  EXPECT_EQ(
      error.frames()[1],
      "installed bad package post-installation script subprocess returned error exit status 1");
  EXPECT_TRUE(error.frames()[2].ends_with("no such thing: x")) << error.frames()[2];
  EXPECT_EQ(configuration_error("dpkg: error processing archive /run/x/less_amd64.deb (--unpack):\n"
                                " trying to overwrite '/usr/bin/less', which is in package a 1\n",
                                1)
                .frames()
                .at(0),
            "cannot unpack the package `less`");
  EXPECT_EQ(configuration_error("", 2).frames().at(1), "the scripts ended with status 2");
}

TEST(DebianOutput, FindsErrorsThatDpkgDidNotMind) {
  const std::vector<Complaint> found = complaints(
      "Setting up a (1) ...\nfine\nSetting up postgresql-15 (15) ...\nError: no cluster\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].package, "postgresql-15");
  EXPECT_EQ(found[0].text, "Error: no cluster");
}

/// Packages made by the distribution's own dpkg-deb.
class DebianTreeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_program("dpkg-deb")) GTEST_SKIP() << "dpkg-deb is not installed";
    fs::create_directory(root());
  }
  static Captured run(std::vector<std::string> argv) {
    Command command{Purpose{"test"}};
    command.argv = std::move(argv);
    return run_captured(std::move(command), 30s);
  }
  fs::path root() const { return folder_.path() / "root"; }
  fs::path source(const std::string& name) {
    fs::path folder = folder_.path() / ("source-" + name);
    make_folders(folder);
    return folder;
  }
  void put(const std::string& name, const std::string& path, const std::string& text) {
    make_folders((source(name) / path).parent_path());
    write_file(source(name) / path, text, false);
    fs::permissions(source(name) / path, fs::perms{0644});
  }
  void add(const std::string& name, const std::string& fields = {}) {
    put(name, "DEBIAN/control",
        "Package: " + name + "\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\n" + fields +
            "Description: x\n");
    fs::permissions(source(name), fs::perms{0755});
    fs::permissions(source(name) / "DEBIAN", fs::perms{0755});
    files_.push_back(folder_.path() / (name + ".deb"));
    const Captured made = run({"dpkg-deb", "--root-owner-group", "-Zgzip", "-b",
                               source(name).string(), files_.back().string()});
    ASSERT_EQ(made.exit.code, 0) << made.err;
  }
  void merge(Tree& tree) {
    for (std::size_t i = packages_.size(); i < files_.size(); ++i) {
      const fs::path staging = root() / (".staging-" + std::to_string(i));
      fs::create_directory(staging);
      packages_.push_back(unpack_package(files_[i], staging));
      tree.merge(packages_, i, staging);
      remove_tree(staging);
    }
    tree.finish_folders();
  }
  std::string text(const char* path) const { return read_file(root() / path); }
  static unsigned mode(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777U;
  }

  TemporaryFolder folder_{temporary_root(), "mlenv-debian-"};
  std::vector<fs::path> files_;
  std::vector<Package> packages_;
};

TEST_F(DebianTreeTest, UnpacksWhatTheArchiveSays) {
  put("a", "bin/tool", "#!/bin/sh\n");
  put("a", "etc/a.conf", "setting\n");
  fs::permissions(source("a") / "bin/tool", fs::perms{04755});
  fs::create_hard_link(source("a") / "bin/tool", source("a") / "bin/same");
  fs::create_symlink("tool", source("a") / "bin/link");
  fs::create_directory(source("a") / "var");
  fs::permissions(source("a") / "var", fs::perms{02775});
  add("a");
  Tree tree{root(), "amd64"};
  merge(tree);
  EXPECT_EQ(fs::read_symlink(root() / "bin"), "usr/bin");
  EXPECT_EQ(mode(root() / "usr/bin/tool"), 04755U);
  EXPECT_EQ(fs::hard_link_count(root() / "usr/bin/same"), 2U);
  EXPECT_EQ(fs::read_symlink(root() / "usr/bin/link"), "tool");
  EXPECT_EQ(mode(root() / "var"), 02775U);
  EXPECT_EQ(tree.canonical("bin/tool"), "usr/bin/tool");
  EXPECT_TRUE(tree.owners().empty());
}

TEST_F(DebianTreeTest, LetsTheReplacingPackageHaveTheFile) {
  for (const bool replacing_first : {false, true}) {
    const std::string suffix = replacing_first ? "1" : "0";
    put("old" + suffix, "usr/f" + suffix, "old");
    put("new" + suffix, "usr/f" + suffix, "new");
    if (replacing_first) add("new" + suffix, "Replaces: old" + suffix + " (<< 9)\n");
    add("old" + suffix);
    if (!replacing_first) add("new" + suffix, "Replaces: old" + suffix + "\n");
  }
  Tree tree{root(), "amd64"};
  merge(tree);
  EXPECT_EQ(text("usr/f0"), "new");
  EXPECT_EQ(text("usr/f1"), "new");
  EXPECT_EQ(tree.lost(0), std::set<std::string>{"usr/f0"});
  EXPECT_EQ(tree.lost(3), std::set<std::string>{"usr/f1"});
}

TEST_F(DebianTreeTest, RefusesAFileOfTwoPackages) {
  put("a", "usr/f", "a");
  put("b", "usr/f", "b");
  add("a");
  add("b");
  Tree tree{root(), "amd64"};
  merge(tree);
  try {
    tree.settle(packages_, files_, root(), true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "`/usr/f` is in `a` and in `b`");
  }
}

TEST_F(DebianTreeTest, FollowsDiversionsAndBringsBackWhatScriptsTook) {
  put("a", "usr/f", "a");
  put("a", "usr/gone", "shipped");
  put("b", "usr/f", "b");
  add("a");
  add("b");
  Tree tree{root(), "amd64"};
  merge(tree);
  make_folders(root() / "var/lib/dpkg");
  write_file(root() / "var/lib/dpkg/diversions", "/usr/f\n/usr/f.a\nb\n", false);
  fs::remove(root() / "usr/gone");
  tree.settle(packages_, files_, root(), true);
  EXPECT_EQ(text("usr/f"), "b");
  EXPECT_EQ(text("usr/f.a"), "a");
  EXPECT_EQ(text("usr/gone"), "shipped");
  EXPECT_EQ(read_diversions(root()).at("/usr/f").package, "b");
}

TEST_F(DebianTreeTest, WritesRecordsThatDpkgReads) {
  if (!find_program("dpkg-query")) GTEST_SKIP() << "dpkg is not installed";
  put("b", "etc/b.conf", "hello\n");
  put("b", "DEBIAN/conffiles", "/etc/b.conf\n");
  put("b", "DEBIAN/preinst", "#!/bin/sh\n");
  fs::permissions(source("b") / "DEBIAN/preinst", fs::perms{0755});
  put("a", "bin/a", "");
  add("b");
  add("a");
  Tree tree{root(), "amd64"};
  merge(tree);
  write_database(tree, packages_);
  const auto query = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"dpkg-query", "--admindir=" + (root() / "var/lib/dpkg").string()});
    const Captured answer = run(arguments);
    return answer.out + answer.err;
  };
  EXPECT_EQ(query({"-W", "-f", "${Package} ${db:Status-Status} ${Conffiles}\n"}),
            "a unpacked \nb unpacked  /etc/b.conf b1946ac92492d2347c6235b4d2611184\n");
  EXPECT_EQ(query({"-L", "a"}), "/.\n/bin\n/bin/a\n");
  EXPECT_EQ(mode(root() / kPreinstFolder / "b/preinst"), 0755U);
  EXPECT_TRUE(fs::exists(root() / kPreinstFolder / "b/control"));
}

TEST(DebianNormalise, TakesOutWhatDiffers) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path& root = folder.path();
  const auto put = [&](const char* path, const char* content) {
    make_folders((root / path).parent_path());
    write_file(root / path, content, false);
  };
  for (const char* path :
       {"etc/ssh/ssh_host_rsa_key", "etc/ssh/ssh_host_rsa_key.pub", "etc/passwd-", "run/x.pid",
        "var/log/dpkg.log", "var/log/apt/history.log", "var/cache/ldconfig/aux-cache", "tmp/x/y",
        "var/lib/dpkg/status-old", "etc/ssl/certs/ssl-cert-snakeoil.pem"}) {
    put(path, "x");
  }
  fs::create_symlink("ssl-cert-snakeoil.pem", root / "etc/ssl/certs/0123.0");
  for (const char* path : {"etc/passwd", "etc/ssh/sshd_config", "var/lib/dpkg/status"}) {
    put(path, "stays");
  }
  put("etc/machine-id", "0123\n");
  put("var/log/wtmp", "record");
  make_folders(root / "run/lock");
  normalise(root);
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_directory()) left.push_back(entry.path().lexically_relative(root).string());
  }
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{"etc/machine-id", "etc/passwd", "etc/ssh/sshd_config",
                                            "var/lib/dpkg/status", "var/log/wtmp"}));
  EXPECT_EQ(fs::file_size(root / "etc/machine-id"), 0U);
  EXPECT_EQ(fs::file_size(root / "var/log/wtmp"), 0U);
  EXPECT_TRUE(fs::exists(root / "run/lock"));
  EXPECT_TRUE(fs::exists(root / "var/log/apt"));

  set_times(root, 1'234'567'890);
  struct stat status {};
  ASSERT_EQ(::stat((root / "etc").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 1'234'567'890);
  EXPECT_EQ(status.st_mtim.tv_nsec, 0);
}

}  // namespace
}  // namespace mlenv::debian
