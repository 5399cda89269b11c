#include "images/archive.hpp"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process.hpp"
#include "tests/support/error_code.hpp"
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
    Command command{Purpose{"test"}};
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

/// Why an output is refused; empty when it is not.
std::string output_refusal(const std::string& output) {
  try {
    Output::parse(output).check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::usage) << output;
    EXPECT_EQ(error.code(), "bad-output") << output;
    return error.frames().back();
  }
  return {};
}

TEST_F(ArchiveTest, OutputsAreCheckedBeforehand) {
  const std::string folder = folder_.path().string();
  write_file(path("file"), "x");
  for (const char* format : {"oci:", "oci-archive:", "docker-archive:"}) {
    EXPECT_EQ(output_refusal(format + folder + "/none/x"),
              "the folder `" + folder + "/none` does not exist");
    EXPECT_EQ(output_refusal(format + folder + "/file/x"), "`" + folder + "/file` is not a folder");
    EXPECT_EQ(output_refusal(format + folder + "/new"), "");
  }
  EXPECT_NE(output_refusal("oci:" + folder), "") << "not empty and no layout";
  EXPECT_NE(output_refusal("oci:" + folder + "/file"), "");
  EXPECT_EQ(output_refusal("oci:" + folder + "/new/"), "");
  EXPECT_NE(output_refusal("oci-archive:" + folder), "");
  EXPECT_NE(output_refusal("oci-archive:" + folder + "/new/"), "");
  EXPECT_EQ(output_refusal("oci-archive:" + folder + "/file"), "");
  EXPECT_EQ(output_refusal("docker-archive:/dev/null"), "");
  EXPECT_TRUE(Output::parse("docker-archive:-").is_stdout());
  EXPECT_TRUE(Output::parse("oci-archive:/dev/stdout").is_stdout());
  EXPECT_FALSE(Output::parse("oci:./-").is_stdout());
  EXPECT_THROW((void)Output::parse("oci:-"), Error);
}

TEST_F(ArchiveTest, WhatIsNoRegularFileIsWrittenInto) {
  write("docker-archive:" + path("whole.tar").string(), "image:v1");
  const fs::path pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", path("link"));
  std::string got;
  std::thread reader{[&] { got = read_file(pipe); }};
  write("docker-archive:" + path("link").string(), "image:v1");
  reader.join();
  EXPECT_EQ(got, read_file(path("whole.tar")));
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  write("oci-archive:/dev/null", "image:v1");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(ArchiveTest, ALinkToAFileStaysALink) {
  write_file(path("file"), "old");
  fs::create_symlink("file", path("link"));
  write("oci-archive:" + path("link").string(), "image:v1");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_GT(fs::file_size(path("file")), 1000U);
}

/// Calls it in a thread that may, of files, only what their modes say: root may all.
template <typename Act>
void as_modes_say(Act&& act) {
  std::thread{[&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none{};
    ASSERT_EQ(::syscall(SYS_capset, &header, none.data()), 0);
    act();
  }}.join();
}

TEST_F(ArchiveTest, OfALinkTheFilesFolderMustBeOpen) {
  const fs::path closed = path("closed");
  make_folders(closed);
  write_file(path("file"), "old");
  write_file(closed / "file", "old");
  fs::create_symlink("../file", closed / "link");
  fs::create_symlink("closed/file", path("link"));
  ASSERT_EQ(::chmod(closed.c_str(), 0555), 0);
  as_modes_say([&] {
    EXPECT_EQ(output_refusal("oci-archive:" + (closed / "link").string()), "");
    EXPECT_EQ(output_refusal("oci-archive:" + path("link").string()),
              "`" + fs::canonical(closed).string() + "`: Permission denied");
  });
  ASSERT_EQ(::chmod(closed.c_str(), 0755), 0);
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

TEST_F(ArchiveTest, FolderKeepsWhatItsIndexSaysOfItself) {
  const fs::path folder = path("layout");
  make_folders(folder);
  write_file(folder / "oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
  write_file(folder / "index.json",
             R"({"schemaVersion":2,"manifests":[],"annotations":{"org.example.by":"hand"}})");
  write("oci:" + folder.string(), "image:one");
  const json index = read_json(folder / "index.json");
  ASSERT_TRUE(index.contains("annotations"));
  EXPECT_EQ(index["annotations"]["org.example.by"], "hand");
  EXPECT_EQ(index["manifests"].size(), 1U);
}

/// Whole name → what selects it.
std::map<std::string, std::string> layout_names(const fs::path& folder) {
  std::map<std::string, std::string> names;
  const json index = read_json(folder / "index.json");
  for (const json& entry : index["manifests"]) {
    const json& annotations = entry["annotations"];
    const std::string name = annotations["io.containerd.image.name"];
    EXPECT_TRUE(names.emplace(name, annotations["org.opencontainers.image.ref.name"]).second);
  }
  return names;
}

TEST_F(ArchiveTest, FolderKeepsImagesOfOtherNames) {
  const std::string output = "oci:" + path("layout").string();
  write(output, "one:latest");
  const Image second = random_image(store_, 6, 1);
  for (int times = 0; times < 2; ++times) {
    write_output(store_, second, Reference::parse("two"), Output::parse(output), quiet_);
    write(output, "one:latest");
  }
  using Names = std::map<std::string, std::string>;
  EXPECT_EQ(layout_names(path("layout")),
            (Names{{"one:latest", "latest"}, {"two:latest", "two:latest"}}));
}

TEST_F(ArchiveTest, WritersOfAFreshFolderSeeEachOther) {
  constexpr int kWriters = 8;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back(
        [&, i] { write("oci:" + path("layout").string(), "image:v" + std::to_string(i)); });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(layout_names(path("layout")).size(), kWriters);
  EXPECT_EQ(read_json(path("layout") / "oci-layout")["imageLayoutVersion"], "1.0.0");
}

TEST_F(ArchiveTest, WrongBytesInAFolderAreReplaced) {
  const std::string output = "oci:" + path("layout").string();
  write(output, "image:v1");
  const Digest& layer = image_.layers[0].blob.digest;
  const fs::path blob = path("layout") / "blobs/sha256" / layer.hex();
  write_file(blob, std::string(read_file(blob).size(), 'x'));
  write(output, "image:v1");
  EXPECT_EQ(Digest::of(read_file(blob)), layer);
}

TEST_F(ArchiveTest, FolderOfOtherFilesIsLeftAlone) {
  const fs::path folder = path("layout");
  make_folders(folder);
  write_file(folder / "thesis.tex", "x");
  EXPECT_THROW(write("oci:" + folder.string(), "image:one"), Error);
  EXPECT_EQ(list_folder(folder).size(), 1U);
}

TEST_F(ArchiveTest, WhatIsNoFileInAFolderIsNamed) {
  for (const char* name : {"oci-layout", "index.json"}) {
    const fs::path folder = path(std::string("layout-") + name);
    make_folders(folder);
    write_file(folder / "oci-layout", "");
    fs::remove(folder / name);
    ASSERT_EQ(::mkfifo((folder / name).c_str(), 0600), 0);
    EXPECT_EQ(code_of([&] { write("oci:" + folder.string(), "image:one"); }), "not-a-file") << name;
  }
}

TEST_F(ArchiveTest, FolderWithAForeignIndexIsLeftAlone) {
  const fs::path folder = path("layout");
  make_folders(folder);
  write_file(folder / "oci-layout", "{}");
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
