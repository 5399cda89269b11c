// Debian packages that want out of the tree they are unpacked into, or are not what they say; dpkg
// is the oracle for those that are only odd.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/error.hpp"
#include "builder/debian.hpp"
#include "builder/debian/beneath.hpp"
#include "builder/debian/database.hpp"
#include "builder/debian/normalise.hpp"
#include "builder/debian/tree.hpp"
#include "tests/support/child.hpp"
#include "tests/support/deb_builder.hpp"

namespace mlenv::debian {
namespace {

using DebEntries = std::vector<TestEntry>;

TestEntry node(TarEntry::Type type, std::string path) {
  TestEntry made = test_file(std::move(path), "");
  made.entry.type = type;
  made.entry.device_major = 1;
  made.entry.device_minor = 3;
  return made;
}

class HostileDeb : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(root());
    fs::create_directory(outside());
    write_file(outside() / "secret", "secret", false);
  }
  /// An error's code, or `none`; nothing outside may have changed.
  template <typename Work>
  std::string outcome(Work&& work) {
    std::string code = "none";
    try {
      work();
    } catch (const Error& error) {
      code = error.code();
    }
    EXPECT_EQ(list_folder(outside()).size(), 1U) << code;
    EXPECT_EQ(read_file(outside() / "secret"), "secret");
    EXPECT_EQ(fs::hard_link_count(outside() / "secret"), 1U);
    return code;
  }
  fs::path put(const std::string& deb) {
    fs::path file = folder_.path() / fmt::format("{}.deb", count_++);
    write_file(file, deb, false);
    return file;
  }
  Package unpack(const std::string& deb) {
    const fs::path staging = folder_.path() / fmt::format("staging-{}", count_++);
    fs::create_directory(staging);
    staging_ = staging;
    return unpack_package(put(deb), staging);
  }
  std::string unpacked(const DebEntries& data) {
    return outcome([&] { (void)unpack(test::deb_of("a", data)); });
  }
  fs::path root() const { return folder_.path() / "root"; }
  fs::path outside() const { return folder_.path() / "outside"; }

  TemporaryFolder folder_{temporary_root(), "mlenv-hostile-"};
  fs::path staging_;
  int count_ = 0;
};

TEST_F(HostileDeb, NothingIsUnpackedOutside) {
  const std::string away = outside().string();
  EXPECT_NE(unpacked({test_symlink("d", away), test_file("d/x", "x")}), "none");
  EXPECT_NE(unpacked({test_symlink("d", away), test_hardlink("h", "d/secret")}), "none");
  EXPECT_NE(unpacked({test_symlink("d", away), test_folder("d/x")}), "none");
  EXPECT_NE(unpacked({test_symlink("d", away), test_symlink("d/x", "y")}), "none");
  EXPECT_NE(unpacked({test_symlink("a", away + "/x"), test_file("a", "x")}), "none");
  EXPECT_NE(unpacked({test_symlink("up", ".."), test_hardlink("h", "up/outside/secret")}), "none");
  EXPECT_EQ(unpacked({test_file("../x", "x")}), "bad-tar");
  EXPECT_EQ(unpacked({test_file("a/../../x", "x")}), "bad-tar");
  EXPECT_EQ(unpacked({test_hardlink("h", "../outside/secret")}), "bad-tar");
  EXPECT_NE(unpacked({test_hardlink("h", away + "/secret")}), "none");  // taken as below the root
  EXPECT_EQ(unpacked({test_file("/etc/x", "x")}), "none");
  EXPECT_EQ(read_file(staging_ / "etc/x"), "x");
}

TEST_F(HostileDeb, KindsThatAnImageCannotBringAreRefused) {
  EXPECT_EQ(unpacked({node(TarEntry::Type::char_device, "dev/null")}), "bad-deb");
  EXPECT_EQ(unpacked({node(TarEntry::Type::block_device, "dev/sda")}), "bad-deb");
  EXPECT_EQ(unpacked({node(TarEntry::Type::fifo, "run/pipe")}), "none");
  EXPECT_TRUE(fs::is_fifo(staging_ / "run/pipe"));
}

TEST_F(HostileDeb, TheSamePathTwiceIsAnError) {
  EXPECT_NE(unpacked({test_file("a", "1"), test_file("a", "2")}), "none");
  EXPECT_NE(unpacked({test_file("a", "1"), test_file("a/b", "2")}), "none");
  EXPECT_EQ(unpacked({test_folder("a"), test_folder("a"), test_file("a/b", "2")}), "none");
}

TEST_F(HostileDeb, AttributesOfTheArchiveAreNotTaken) {
  TestEntry file = test_file("bin/x", "x", 06755);
  file.entry.xattrs["security.capability"] = std::string("\x01\0\0\x02", 4) + std::string(16, '\1');
  file.entry.xattrs["user.note"] = "x";
  ASSERT_EQ(unpacked({file}), "none");
  struct stat status {};
  ASSERT_EQ(::lstat((staging_ / "bin/x").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 06755U);
  EXPECT_LT(::lgetxattr((staging_ / "bin/x").c_str(), "user.note", nullptr, 0), 0);
  EXPECT_LT(::lgetxattr((staging_ / "bin/x").c_str(), "security.capability", nullptr, 0), 0);
}

TEST_F(HostileDeb, ATruncatedOrInflatedArchiveIsAnError) {
  const std::string deb = test::deb_of("a", {test_file("a", std::string(5000, 'x'))});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{8}, std::size_t{200}, deb.size() / 2}) {
    EXPECT_EQ(outcome([&] { (void)unpack(deb.substr(0, size)); }), "bad-deb") << size;
  }
  const std::string text = test::control_of("a") + std::string(std::size_t{70} << 20U, ' ');
  EXPECT_EQ(outcome([&] {
              (void)unpack(test::deb_of(test_tar({test_file("control", text)}), test_tar({})));
            }),
            "too-large");
  EXPECT_EQ(outcome([&] { (void)unpack(test::deb_of(test_tar({}), test_tar({}))); }), "bad-deb");
}

TEST_F(HostileDeb, IsWhatTheIndexSays) {
  const auto built = [&](const LockedDeb& deb) {
    Lock lock;
    lock.platform = "linux/amd64";
    lock.debs = {deb};
    const TemporaryFolder base{folder_.path()};
    QuietProgress quiet;
    const fs::path file = put(test::deb_of("a", {test_file("usr/a", "a")}));
    try {
      (void)build_debian_base(lock, {file}, base.path(), quiet);
      return std::string("none");
    } catch (const Error& error) {
      return std::string(error.code()) + ": " + error.frames().back();
    }
  };
  const Digest digest = Digest::of("");
  EXPECT_EQ(built({"b", "1", "all", "pool/b.deb", 1, digest}),
            "bad-deb: expected `b` 1 for all, found `a` 1 for all");
  EXPECT_EQ(built({"a", "2", "all", "pool/a.deb", 1, digest}),
            "bad-deb: expected `a` 2 for all, found `a` 1 for all");
  EXPECT_EQ(built({"a", "1", "amd64", "pool/a.deb", 1, digest}),
            "bad-deb: expected `a` 1 for amd64, found `a` 1 for all");
}

TEST_F(HostileDeb, ALinkToAwayIsNoFolderOfTheTree) {
  Tree tree{root(), "amd64"};
  const auto merge = [&](const DebEntries& data) {
    std::vector<Package> packages;
    packages.push_back(unpack(test::deb_of("a", data)));
    tree.merge(packages, 0, staging_);
  };
  const std::string away = outside().string();
  // As a program of the tree sees it: below the root.
  EXPECT_EQ(outcome([&] { merge({test_symlink("d", away)}); }), "none");
  EXPECT_NE(outcome([&] { merge({test_folder("d"), test_file("d/x", "x")}); }), "none");
  EXPECT_EQ(outcome([&] { (void)tree.canonical("../outside/x"); }), "base-failed");
  EXPECT_EQ(outcome([&] { (void)tree.canonical("a/../../outside/x"); }), "base-failed");
}

TEST_F(HostileDeb, AFolderThatBecameALinkMeanwhileIsNoticed) {
  Tree tree{root(), "amd64"};
  std::vector<Package> packages;
  packages.push_back(unpack(test::deb_of("a", {test_folder("d"), test_file("d/x", "x")})));
  const std::vector<fs::path> files = {
      put(test::deb_of("a", {test_folder("d"), test_file("d/x", "x")}))};
  tree.merge(packages, 0, staging_);
  tree.finish_folders();
  // A script's doing. To it, the link leads to a folder of the tree that is not there.
  remove_tree(root() / "d");
  fs::create_symlink(outside(), root() / "d");
  EXPECT_NE(outcome([&] { tree.settle(packages, files, root(), true); }), "none");
}

TEST_F(HostileDeb, ADiversionStaysInTheTree) {
  Tree tree{root(), "amd64"};
  const std::string deb = test::deb_of("a", {test_folder("usr"), test_file("usr/f", "x")});
  std::vector<Package> packages;
  packages.push_back(unpack(deb));
  const std::vector<fs::path> files = {put(deb)};
  tree.merge(packages, 0, staging_);
  tree.finish_folders();
  make_folders(root() / "var/lib/dpkg");
  for (const std::string to : {"/usr/../../outside/f", "/../outside/f", "", "/"}) {
    write_file(root() / "var/lib/dpkg/diversions", "/usr/f\n" + to + "\nb\n", false);
    EXPECT_EQ(outcome([&] { tree.settle(packages, files, root(), true); }), "base-failed") << to;
  }
}

TEST_F(HostileDeb, TheBuildWritesThroughNoLink) {
  const auto refused = [&](const std::string& folder, const std::string& target) {
    const fs::path path = root() / folder;
    make_folders(path.parent_path());
    fs::create_symlink(target, path);
    std::string code = outcome([&] { require_real_folders(root()); });
    remove_tree(root());
    fs::create_directory(root());
    return code;
  };
  EXPECT_EQ(outcome([&] { require_real_folders(root()); }), "none");
  for (const char* folder : {"etc", "etc/ssh", "var", "var/lib/dpkg", "var/lib/dpkg/info",
                             "var/log", "var/tmp", "tmp", "run/lock", "usr/sbin", "root"}) {
    EXPECT_EQ(refused(folder, outside().string()), "base-failed") << folder;
    EXPECT_EQ(refused(folder, "elsewhere"), "base-failed") << folder;
  }
  EXPECT_EQ(refused("var/run", "/run"), "none");
  Tree tree{root(), "amd64"};
  make_folders(root() / "var/lib");
  fs::create_symlink(outside(), root() / "var/lib/dpkg");
  EXPECT_EQ(outcome([&] { write_database(tree, {}); }), "base-failed");
}

TEST_F(HostileDeb, SettingsFilesAreReadAsTheTreeHasThem) {
  make_folders(root() / "etc");
  write_file(root() / "etc/real", "inside", false);
  fs::create_symlink("/etc/real", root() / "etc/absolute");
  fs::create_symlink(outside() / "secret", root() / "etc/away");
  const Fd fd = open_file(root(), O_PATH | O_DIRECTORY);
  EXPECT_EQ(read_inside(fd.get(), "etc/absolute"), "inside");
  EXPECT_EQ(read_inside(fd.get(), "etc/away"), std::nullopt);
  EXPECT_EQ(read_inside(fd.get(), "../outside/secret"), std::nullopt);
  EXPECT_EQ(read_inside(fd.get(), "etc"), std::nullopt);
}

/// `dpkg-deb -x` beside ours: GNU and pax long names, links, pipes, set-ID modes, odd bytes.
TEST_F(HostileDeb, OddArchivesAreUnpackedAsDpkgDoes) {
  if (!find_program("dpkg-deb")) GTEST_SKIP() << "dpkg-deb is not installed";
  constexpr const char* kTar = R"(
import io, sys, tarfile
out = io.BytesIO()
with tarfile.open(fileobj=out, mode="w", format=getattr(tarfile, sys.argv[1])) as tar:
    def add(name, kind=tarfile.REGTYPE, text=b"", mode=0o644, link=""):
        info = tarfile.TarInfo(name)
        info.type, info.size, info.mode, info.mtime, info.linkname = kind, len(text), mode, 1234567890, link
        tar.addfile(info, io.BytesIO(text))
    add("./", tarfile.DIRTYPE, mode=0o755)
    add("./d/", tarfile.DIRTYPE, mode=0o2775)
    add("./d/" + "long" * 40 + "/", tarfile.DIRTYPE, mode=0o755)
    add("./d/" + "long" * 40 + "/" + "name" * 45, text=b"long")
    add("./d/set", text=b"#!/bin/sh\n", mode=0o6755)
    add("./d/hard", tarfile.LNKTYPE, link="./d/set")
    add("./d/soft", tarfile.SYMTYPE, link="/nowhere/" + "x" * 150)
    add("./d/pipe", tarfile.FIFOTYPE, mode=0o600)
    add("./d/empty")
    add("./d/new\nline and \x1b", text=b"odd")
    add("./d/caf\udce9", text=b"latin 1")
sys.stdout.buffer.write(out.getvalue())
)";
  const auto listing = [](const fs::path& folder) {
    return test::output_of({"find", folder.string(), "-mindepth", "1", "(", "-type", "d", "-printf",
                            "%P %y\n", "-o", "-printf", "%P %y %m %s %T@ %l %n\n", ")"});
  };
  const auto sorted = [](const std::string& text) { return test::output_of({"sort"}, text); };
  for (const char* format : {"GNU_FORMAT", "PAX_FORMAT"}) {
    const std::string tar = test::output_of({"python3", "-c", kTar, format});
    const std::string deb =
        test::deb_of(test_tar({test_file("control", test::control_of("odd"))}), tar);
    ASSERT_EQ(outcome([&] { (void)unpack(deb); }), "none") << format;
    const fs::path theirs = folder_.path() / (std::string("theirs-") + format);
    (void)test::output_of({"dpkg-deb", "-x", put(deb).string(), theirs.string()});
    EXPECT_EQ(sorted(listing(staging_)), sorted(listing(theirs))) << format;
    (void)test::output_of(
        {"diff", "-r", "--no-dereference", "-x", "pipe", staging_.string(), theirs.string()});
  }
}

}  // namespace
}  // namespace mlenv::debian
