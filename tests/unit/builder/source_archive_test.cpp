// Source releases, unpacked: files and folders, nothing outside, nothing else; however they are
// packed.
#include "builder/source_archive.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/process.hpp"
#include "base/tar.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/zip_builder.hpp"

namespace mlenv {
namespace {

class SourceArchive : public testing::Test {
 protected:
  void add(TarEntry::Type type, const std::string& path, const std::string& text = {},
           unsigned mode = 0644, const std::string& link = {}) {
    TarEntry entry;
    entry.type = type;
    entry.path = path;
    entry.mode = mode;
    entry.link = link;
    entry.size_bytes = type == TarEntry::Type::file ? text.size() : 0;
    append(tar_header(entry));
    append(as_bytes(text));
    tar_.resize(tar_.size() + tar_padding(text.size()));
  }
  std::string refused(const std::string& file = "a-1.tar.gz") {
    try {
      unpack(file);
      return "nothing";
    } catch (const Error& error) {
      return error.code() + ' ' + error.frames().back();
    }
  }
  void unpack(const std::string& file = "a-1.tar.gz") {
    append(tar_end());
    const Bytes packed = gzip_stored(tar_);
    const fs::path archive = folder_.path() / "archive";
    write_file(archive, {reinterpret_cast<const char*>(packed.data()), packed.size()},
               /*durable=*/false);
    unpack_source(archive, file, out());
  }
  fs::path out() const { return folder_.path() / "out"; }

 private:
  void append(ByteView bytes) { tar_.insert(tar_.end(), bytes.begin(), bytes.end()); }
  TemporaryFolder folder_{temporary_root()};
  Bytes tar_;
};

TEST_F(SourceArchive, IsUnpackedBelowItsTop) {
  add(TarEntry::Type::folder, "a-1", {}, 0700);
  add(TarEntry::Type::file, "a-1/setup.py", "x", 0600);
  add(TarEntry::Type::file, "a-1/deep/run.sh", "y", 0711);
  unpack();
  EXPECT_EQ(read_file(out() / "setup.py"), "x");
  struct stat status {};
  ASSERT_EQ(::stat((out() / "deep/run.sh").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0755U);
  ASSERT_EQ(::stat((out() / "setup.py").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
  EXPECT_FALSE(fs::exists(out().string() + ".tar"));
  EXPECT_EQ(read_build_system(out(), "a").backend, "setuptools.build_meta:__legacy__");
}

TEST_F(SourceArchive, LinksWithinItBecomeCopies) {
  add(TarEntry::Type::symlink, "a-1/docs/README", {}, 0777, "../README");
  add(TarEntry::Type::symlink, "a-1/again", {}, 0777, "./docs/README");
  add(TarEntry::Type::symlink, "a-1/both", {}, 0777, "docs");
  add(TarEntry::Type::symlink, "a-1/gone", {}, 0777, "nowhere");
  add(TarEntry::Type::file, "a-1/README", "x", 0755);
  add(TarEntry::Type::hardlink, "a-1/hard", {}, 0644, "a-1/README");
  unpack();
  for (const char* one : {"docs/README", "again", "both/README", "hard"}) {
    EXPECT_FALSE(fs::is_symlink(out() / one)) << one;
    EXPECT_EQ(read_file(out() / one), "x") << one;
  }
  EXPECT_FALSE(fs::exists(fs::symlink_status(out() / "gone")));
}
TEST_F(SourceArchive, RefusesLinksThatLeadOut) {
  add(TarEntry::Type::symlink, "a-1/link", {}, 0777, "/etc");
  EXPECT_EQ(refused(), "bad-source the link `a-1/link` leads out of it");
}
TEST_F(SourceArchive, RefusesLinksThatLeadUp) {
  add(TarEntry::Type::symlink, "a-1/x/link", {}, 0777, "../../../b");
  EXPECT_EQ(refused(), "bad-source the link `a-1/x/link` leads out of it");
}
TEST_F(SourceArchive, RefusesLinksThatLeadOutByAnother) {
  add(TarEntry::Type::symlink, "a-1/x/up", {}, 0777, "..");
  add(TarEntry::Type::symlink, "a-1/link", {}, 0777, "x/up/../b");
  EXPECT_EQ(refused(), "bad-source the link `a-1/link` leads out of it");
}
TEST_F(SourceArchive, RefusesLinksInACircle) {
  add(TarEntry::Type::symlink, "a-1/x/all", {}, 0777, "..");
  EXPECT_EQ(refused(), "bad-source the link `a-1/x/all` leads in a circle");
}
TEST_F(SourceArchive, RefusesFilesThroughLinks) {
  add(TarEntry::Type::symlink, "a-1/link", {}, 0777, "x");
  add(TarEntry::Type::file, "a-1/link/file", "x");
  EXPECT_EQ(refused(), "bad-source `a-1/link` is in it as two things");
}
TEST_F(SourceArchive, RefusesHardLinksToWhatIsNotThere) {
  add(TarEntry::Type::hardlink, "a-1/hard", {}, 0644, "etc/passwd");
  EXPECT_EQ(refused(), "bad-source `a-1/hard` is a link to `etc/passwd`, which is no file in it");
}
TEST_F(SourceArchive, RefusesDevices) {
  add(TarEntry::Type::fifo, "a-1/pipe");
  EXPECT_EQ(refused(), "bad-source `a-1/pipe` is neither a file nor a folder");
}
TEST_F(SourceArchive, RefusesTwoFolders) {
  add(TarEntry::Type::file, "a-1/x");
  add(TarEntry::Type::file, "b-1/x");
  EXPECT_EQ(refused(), "bad-source it holds more than one folder");
}
TEST_F(SourceArchive, RefusesFilesWithoutAFolder) {
  add(TarEntry::Type::file, "setup.py");
  EXPECT_EQ(refused(), "bad-source `setup.py` lies beside its folder, or there is none");
}
TEST_F(SourceArchive, PassesOverWhatPackersPutBeside) {
  add(TarEntry::Type::file, "._a-1", "x");
  add(TarEntry::Type::file, "pax_global_header", "x");
  add(TarEntry::Type::file, "a-1/setup.py", "x");
  unpack();
  EXPECT_EQ(list_folder(out()).size(), 1U);
}
TEST_F(SourceArchive, RefusesWhatIsNoSource) {
  EXPECT_EQ(refused("a-1.exe"),
            "bad-source it is none of `.tar.gz`, `.tgz`, `.tar.bz2`, `.tbz`, `.tar.xz`, `.txz`, "
            "`.tar` and `.zip`");
}

/// Packs by the machine's tar and its programs.
class PackedSource : public SourceArchive, public testing::WithParamInterface<const char*> {};
TEST_P(PackedSource, IsUnpacked) {
  const TemporaryFolder work{temporary_root()};
  make_folders(work.path() / "a-1");
  write_file(work.path() / "a-1/setup.py", "x", /*durable=*/false);
  const std::string file = std::string("a-1.tar.") + GetParam();
  const std::string archive = (work.path() / file).string();
  Command command{Purpose{"test-tar"}};
  command.argv = {"tar", "-C", work.path().string(), "-caf", archive, "a-1"};
  ASSERT_EQ(run_captured(std::move(command), std::chrono::minutes{1}).exit.code, 0);
  unpack_source(archive, file, out());
  EXPECT_EQ(read_file(out() / "setup.py"), "x");
}
INSTANTIATE_TEST_SUITE_P(Kinds, PackedSource, testing::Values("bz2", "xz", "gz"));

class ZipSource : public SourceArchive {
 protected:
  std::string unpack_zip() {
    const TemporaryFolder work{temporary_root()};
    write_file(work.path() / "zip", zip_.finish(), /*durable=*/false);
    try {
      unpack_source(work.path() / "zip", "a-1.zip", out());
      return "nothing";
    } catch (const Error& error) {
      return error.code() + ' ' + error.frames().back();
    }
  }
  test::ZipBuilder zip_;
};
TEST_F(ZipSource, IsUnpacked) {
  zip_.add("a-1/setup.py", std::string(100, 'x'), /*deflated=*/true);
  zip_.add("a-1/run", "y", false, {},
           [](test::ZipHeader& header) { header.attributes = 0100755U << 16U; });
  EXPECT_EQ(unpack_zip(), "nothing");
  EXPECT_EQ(read_file(out() / "setup.py"), std::string(100, 'x'));
  EXPECT_EQ(fs::status(out() / "run").permissions(), fs::perms(0755));
}
TEST_F(ZipSource, RefusesWhatLeadsOut) {
  zip_.add("a-1/../../etc/x", "x");
  EXPECT_EQ(unpack_zip().substr(0, 8), "bad-zip ");
}
TEST_F(ZipSource, RefusesOtherContentThanItsSum) {
  zip_.add(
      "a-1/setup.py", "x", false, [](test::ZipHeader& header) { header.crc = 1; },
      [](test::ZipHeader& header) { header.crc = 1; });
  EXPECT_EQ(unpack_zip(), "bad-zip the content of `a-1/setup.py` does not match its CRC-32");
}
TEST_F(ZipSource, RefusesFilesWithoutAFolder) {
  zip_.add("setup.py", "x");
  EXPECT_EQ(unpack_zip(), "bad-source `setup.py` lies beside its folder, or there is none");
}

TEST_F(SourceArchive, BuildSystemIsWhatItsPyprojectSays) {
  add(TarEntry::Type::file, "a-1/pyproject.toml",
      "[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"own\"\nbackend-path = "
      "[\".\"]\n");
  unpack();
  const BuildSystem system = read_build_system(out(), "a-1.tar.gz");
  EXPECT_EQ(system.requirements, (std::vector<std::string>{"hatchling"}));
  EXPECT_EQ(system.backend, "own");
  EXPECT_EQ(system.backend_path, (std::vector<std::string>{"."}));
}

TEST(SourceArchiveBzip2, ADamagedOneIsSaidToBe) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path archive = folder.path() / "archive";
  write_file(archive, "BZh91AY&SYdamaged", /*durable=*/false);
  EXPECT_EQ(code_of([&] { unpack_source(archive, "a-1.tar.bz2", folder.path() / "out"); }),
            "bad-bzip2");
}

}  // namespace
}  // namespace mlenv
