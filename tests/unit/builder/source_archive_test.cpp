// Source releases, unpacked: files and folders, nothing outside, nothing else.
#include "builder/source_archive.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/tar.hpp"

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

TEST_F(SourceArchive, RefusesLinksOtherTopsAndOtherFormats) {
  add(TarEntry::Type::symlink, "a-1/link", {}, 0777, "/etc");
  EXPECT_EQ(refused(), "bad-source `a-1/link` is neither a file nor a folder");
}
TEST_F(SourceArchive, RefusesTwoFolders) {
  add(TarEntry::Type::file, "a-1/x");
  add(TarEntry::Type::file, "b-1/x");
  EXPECT_EQ(refused(), "bad-source it holds more than one folder");
}
TEST_F(SourceArchive, RefusesWhatIsNoTarGz) {
  EXPECT_EQ(refused("a-1.zip"), "bad-source it is no .tar.gz, as PEP 625 wants it");
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

}  // namespace
}  // namespace mlenv
