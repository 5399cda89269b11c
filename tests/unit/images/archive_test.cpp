#include "images/archive.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

json read_json(const fs::path& path) { return json::parse(read_file(path)); }

class ArchiveTest : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void write(const std::string& output, const std::string& name) {
    write_output(store_, image_, Reference::parse(name), Output::parse(output), quiet_);
  }
  /// Runs a program that is not ours; its output.
  static std::string run(std::vector<std::string> argv) {
    Command command;
    command.argv = std::move(argv);
    const Captured result = run_captured(command, std::chrono::seconds{60});
    EXPECT_EQ(result.exit.code, 0) << result.err;
    return result.out;
  }
  /// The manifest digest that skopeo computes for it, and its layers.
  static void expect_skopeo_reads(const std::string& where, const Image& image,
                                  bool same_manifest) {
    if (!find_program("skopeo")) GTEST_SKIP() << "skopeo is not installed";
    const json seen = json::parse(run({"skopeo", "inspect", where}));
    if (same_manifest) {
      EXPECT_EQ(seen["Digest"], image.digest().str());
    }
    EXPECT_EQ(seen["Architecture"], "amd64");
    EXPECT_EQ(seen["Created"], "2023-11-14T22:13:20Z");
    EXPECT_EQ(seen["Env"], image.settings.env);
    EXPECT_EQ(seen["Layers"].size(), image.layers.size());
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  Image image_{random_image(store_, 5, 3)};
  QuietProgress quiet_;
};

TEST_F(ArchiveTest, OutputsSayFormatAndPath) {
  EXPECT_EQ(Output::parse("oci:a/b:c").format, Output::Format::oci);
  EXPECT_EQ(Output::parse("oci:a/b:c").path, "a/b:c");
  EXPECT_EQ(Output::parse("oci-archive:x.tar").format, Output::Format::oci_archive);
  EXPECT_EQ(Output::parse("docker-archive:/x.tar").format, Output::Format::docker_archive);
  for (const char* wrong : {"", "x.tar", "oci:", "docker:x", "oci-archive:"}) {
    EXPECT_THROW((void)Output::parse(wrong), Error) << wrong;
  }
}

TEST_F(ArchiveTest, FolderIsAnOciLayout) {
  const fs::path folder = path("layout");
  write("oci:" + folder.string(), "localhost:5000/team/image:v1");
  EXPECT_EQ(read_json(folder / "oci-layout")["imageLayoutVersion"], "1.0.0");
  const json index = read_json(folder / "index.json");
  ASSERT_EQ(index["manifests"].size(), 1U);
  const json& entry = index["manifests"][0];
  EXPECT_EQ(entry["digest"], image_.digest().str());
  EXPECT_EQ(entry["annotations"]["org.opencontainers.image.ref.name"], "v1");
  EXPECT_EQ(entry["annotations"]["io.containerd.image.name"], "localhost:5000/team/image:v1");
  std::size_t blobs = 0;
  for (const fs::path& blob : list_folder(folder / "blobs" / "sha256")) {
    EXPECT_EQ(Digest::of(read_file(blob)).hex(), blob.filename());
    ++blobs;
  }
  EXPECT_EQ(blobs, 5U);
  expect_skopeo_reads("oci:" + folder.string() + ":v1", image_, true);
}

TEST_F(ArchiveTest, FolderKeepsOtherTagsAndReplacesItsOwn) {
  const fs::path folder = path("layout");
  const std::string output = "oci:" + folder.string();
  write(output, "image:one");
  const Image second = random_image(store_, 6, 1);
  for (const char* tag : {"image:two", "image:one", "image:one"}) {
    write_output(store_, second, Reference::parse(tag), Output::parse(output), quiet_);
  }
  std::map<std::string, std::string> tags;
  const json index = read_json(folder / "index.json");
  for (const json& entry : index["manifests"]) {
    const std::string tag = entry["annotations"]["org.opencontainers.image.ref.name"];
    EXPECT_TRUE(tags.emplace(tag, entry["digest"]).second);
  }
  EXPECT_EQ(tags, (std::map<std::string, std::string>{{"one", second.digest().str()},
                                                      {"two", second.digest().str()}}));
}

TEST_F(ArchiveTest, FolderWithAForeignIndexIsLeftAlone) {
  const fs::path folder = path("layout");
  make_folders(folder);
  write_file(folder / "index.json", "{\"manifests\":7}");
  EXPECT_THROW(write("oci:" + folder.string(), "image:one"), Error);
  EXPECT_EQ(read_file(folder / "index.json"), "{\"manifests\":7}");
}

TEST_F(ArchiveTest, ArchivesAreTheSameEveryTime) {
  for (const std::string format : {"oci-archive:", "docker-archive:"}) {
    write(format + path("one.tar").string(), "image:v1");
    write(format + path("two.tar").string(), "image:v1");
    EXPECT_EQ(Digest::of(read_file(path("one.tar"))), Digest::of(read_file(path("two.tar"))));
  }
}

TEST_F(ArchiveTest, OtherProgramsReadTheArchives) {
  const std::string oci = path("oci.tar").string();
  write("oci-archive:" + oci, "image:v1");
  EXPECT_NE(run({"tar", "-tf", oci}).find("blobs/sha256/" + image_.digest().hex()),
            std::string::npos);
  expect_skopeo_reads("oci-archive:" + oci + ":v1", image_, true);
  const std::string docker = path("docker.tar").string();
  write("docker-archive:" + docker, "image:v1");
  const json manifest = json::parse(run({"tar", "-xOf", docker, "manifest.json"}));
  EXPECT_EQ(manifest[0]["RepoTags"], std::vector<std::string>{"image:v1"});
  EXPECT_EQ(manifest[0]["Layers"].size(), 3U);
  expect_skopeo_reads("docker-archive:" + docker + ":image:v1", image_, false);
}

TEST_F(ArchiveTest, SkopeoCopiesItWithoutAChange) {
  if (!find_program("skopeo")) GTEST_SKIP() << "skopeo is not installed";
  write("oci-archive:" + path("a.tar").string(), "image:v1");
  run({"skopeo", "copy", "-q", "oci-archive:" + path("a.tar").string(),
       "dir:" + path("copy").string()});
  EXPECT_EQ(read_file(path("copy") / "manifest.json"), image_.manifest);
  for (const Layer& layer : image_.layers) {
    EXPECT_EQ(Digest::of(read_file(path("copy") / layer.blob.digest.hex())), layer.blob.digest);
  }
}

TEST_F(ArchiveTest, ADamagedLayerIsNotWritten) {
  const fs::path blob = store_.root() / "blobs" / image_.layers[0].blob.digest.hex();
  write_file(blob, "something else");
  EXPECT_THROW(write("oci-archive:" + path("a.tar").string(), "image:v1"), Error);
  EXPECT_EQ(list_folder(folder_.path()).size(), 1U) << "only the store";
}

}  // namespace
}  // namespace mlenv
