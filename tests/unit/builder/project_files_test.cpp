// A project's folder goes into a layer: what is in it, and that nothing else of the machine is.
#include "builder/project_files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <map>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/tar.hpp"
#include "builder/layers.hpp"
#include "builder/staged_layer.hpp"
#include "images/store.hpp"
#include "images/unpack.hpp"
#include "tests/support/deep_tree.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class ProjectFilesTest : public testing::Test {
 protected:
  fs::path put(const std::string& path, const std::string& text, mode_t mode = 0644) {
    fs::path where = project() / path;
    fs::create_directories(where.parent_path());
    write_file(where, text, /*durable=*/false);
    EXPECT_EQ(::chmod(where.c_str(), mode), 0);
    return where;
  }
  fs::path project() const { return folder_.path() / "project"; }

  Recipe recipe(const std::string& files) const {
    return parse_recipe("name: a\nbase: debian:bookworm\nfiles: " + files + "\n",
                        project() / "recipe.yaml");
  }
  ProjectFiles collect(const std::string& files) {
    fs::create_directories(project());
    return collect_files(recipe(files), pool_);
  }
  std::string refused(const std::string& files, std::string_view code = "recipe-invalid") {
    try {
      collect(files);
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
  }
  /// PathList in the image, in order.
  std::vector<std::string> paths(const std::string& files) {
    std::vector<std::string> found;
    for (const FilesPart& part : collect(files).parts) {
      for (const ProjectFile& file : part.files) found.push_back(file.path);
    }
    return found;
  }

  /// A base with a folder of its own mode, and a link.
  Layer base() {
    StagedLayer staged{store_, 42, /*unpack=*/false};
    staged.writer().add_folder("usr/bin");
    staged.writer().add_symlink("bin", "usr/bin");
    staged.writer().add_text("etc/passwd", 0644, "");
    Layer layer = staged.publish("base");
    return layer;
  }
  Layer make(const ProjectFiles& files, Store& store, bool unpack = true) {
    const Layer below = base();
    return make_files_layer({files.parts.at(0), {below}, 42}, store, pool_, unpack);
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  Pool pool_{2};
};

using PathList = std::vector<std::string>;

TEST_F(ProjectFilesTest, TakesAFolderOrAFile) {
  put("src/a.py", "a");
  put("src/deep/b.py", "b");
  fs::create_directories(project() / "src/empty");
  put("conf/train.toml", "c");
  EXPECT_EQ(paths("{src: /w, conf/train.toml: /etc/t.toml}"),
            (PathList{"etc/t.toml", "w", "w/a.py", "w/deep", "w/deep/b.py", "w/empty"}));
  EXPECT_EQ(paths("{conf/train.toml: /etc/}"), (PathList{"etc/train.toml"}));
  EXPECT_EQ(paths("{src: /}"), (PathList{"a.py", "deep", "deep/b.py", "empty"}));
  EXPECT_EQ(paths("{src/deep: /w/}"), (PathList{"w", "w/b.py"}));
}

TEST_F(ProjectFilesTest, TheProjectItselfIsWithoutWhatABuildWrites) {
  put("recipe.yaml", "r");
  put("recipe.lock", "l");
  put("recipe.built", "b");
  put(".mlenvignore", "!*.built\n");
  put(".git/config", "g");
  EXPECT_EQ(paths("{.: /w}"), (PathList{"w", "w/.mlenvignore", "w/recipe.lock", "w/recipe.yaml"}));
}

TEST_F(ProjectFilesTest, DataIsNeverCopiedHoweverItsPathIsWritten) {
  put("a.py", "a");
  put("corpus/sub/text", "t");
  fs::create_directory_symlink(project() / "corpus", folder_.path() / "elsewhere");
  const auto with_data = [&](const std::string& files, const std::string& from) {
    return parse_recipe("name: a\nbase: debian:bookworm\nfiles: " + files +
                            "\ndata: {corpus: {from: " + from + "}}\n",
                        project() / "recipe.yaml");
  };
  for (const std::string& from :
       {std::string("corpus"), std::string("../project/corpus"), std::string("../elsewhere"),
        (project() / "corpus").string(), (folder_.path() / "elsewhere").string()}) {
    const ProjectFiles found = collect_files(with_data("{.: /w}", from), pool_);
    std::vector<std::string> copied;
    for (const ProjectFile& file : found.parts.at(0).files) copied.push_back(file.path);
    EXPECT_EQ(copied, (PathList{"w", "w/a.py"})) << from;
    for (const char* files : {"{corpus: /w}", "{corpus/sub: /w}", "{corpus/sub/text: /w/t}"}) {
      const Error error = error_of([&] { require_files(with_data(files, from)); });
      EXPECT_EQ(error.code(), "recipe-invalid") << from;
      EXPECT_NE(std::string(error.what()).find("is data, which is never in the image"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST_F(ProjectFilesTest, LeavesOutWhatTheProjectSaysAndWhatHoldsSecrets) {
  put("src/a.py", "a");
  put("src/big.bin", "b");
  put("src/.env", "SECRET=1");
  put("src/sub/id_rsa", "key");
  put("src/sub/tls.pem", "key");
  put(".dockerignore", "**/*.bin\n");
  EXPECT_EQ(paths("{src: /w}"), (PathList{"w", "w/a.py", "w/sub"}));
  EXPECT_EQ(collect("{src: /w}").secrets,
            (PathList{"src/.env", "src/sub/id_rsa", "src/sub/tls.pem"}));
  EXPECT_EQ(collect("{src: /w}").ignore_file, ".dockerignore");
  put(".mlenvignore", "!**/*.pem\n**/.env\n");  // then the other file does not count
  EXPECT_EQ(paths("{src: /w}"), (PathList{"w", "w/a.py", "w/big.bin", "w/sub", "w/sub/tls.pem"}));
  EXPECT_EQ(collect("{src: /w}").secrets, (PathList{"src/sub/id_rsa"}));
}

TEST_F(ProjectFilesTest, RefusesASourceAtItsPlace) {
  put("a", "a");
  put("b", "b");
  put("key.pem", "k");
  put("d/x", "x");
  put(".mlenvignore", "b\n");
  fs::create_symlink("/etc", project() / "etc");
  EXPECT_NE(refused("{nowhere: /w}").find("recipe.yaml:3:9: `nowhere` does not exist"),
            std::string::npos);
  EXPECT_NE(refused("{a/x: /w}").find("`a/x` does not exist"), std::string::npos);
  EXPECT_NE(refused("{keyy.pem: /w}").find("did you mean `key.pem`?"), std::string::npos);
  EXPECT_NE(refused("{b: /w}").find("`b` is left out by `.mlenvignore`"), std::string::npos);
  EXPECT_NE(refused("{key.pem: /w}").find("write `!key.pem` in `.mlenvignore`"), std::string::npos);
  EXPECT_NE(refused("{etc/passwd: /w}").find("out of the recipe's folder, to `/etc/passwd`"),
            std::string::npos);
  EXPECT_NE(refused("{a: /workspace}").find("write `/workspace/` to put it there"),
            std::string::npos);
  EXPECT_NE(refused("{a: /w/x, d: /w}").find("`a` would become `/w/x`, and `d/x` `/w/x`"),
            std::string::npos);
  EXPECT_NE(refused("{a: /w/x, d: /w/x/y}").find("would become `/w/x/y"), std::string::npos);
}

TEST_F(ProjectFilesTest, OneSourceOverItselfIsNoClash) {
  put("a.txt", "a");
  put("d/x", "x");
  EXPECT_EQ(paths("{a.txt: /w/, .: /w}"), paths("{.: /w}"));
  EXPECT_EQ(paths("{d/x: /w/d/, d: /w/d}"), (PathList{"w/d", "w/d/x"}));
  EXPECT_EQ(collect("{a.txt: /w/, .: /w}").digest, collect("{.: /w}").digest);
  EXPECT_NE(refused("{a.txt: /w/d/x, .: /w}").find("would become"), std::string::npos);
}

TEST_F(ProjectFilesTest, KeepsLinksThatStayInside) {
  put("src/deep/a", "a");
  fs::create_symlink("deep/a", project() / "src/one");
  fs::create_symlink("../one", project() / "src/deep/two");
  fs::create_symlink("absent", project() / "src/three");
  const ProjectFiles files = collect("{src: /w}");
  EXPECT_EQ(files.parts.at(0).files.at(3).link, "../one");
  for (const char* target : {"/etc/passwd", "../../x", "..", "deep/../../x"}) {
    fs::remove(project() / "src/deep/bad");
    fs::create_symlink(target, project() / "src/deep/bad");
    const bool inside =
        std::string_view(target) == ".." || std::string_view(target) == "deep/../../x";
    EXPECT_EQ(refused("{src: /w}", "bad-file").empty(), inside) << target;
  }
  fs::remove(project() / "src/deep/bad");
  ASSERT_EQ(::mkfifo((project() / "src/pipe").c_str(), 0644), 0);
  EXPECT_NE(refused("{src: /w}", "bad-file").find("`src/pipe` is a socket, pipe or device"),
            std::string::npos);
}

TEST_F(ProjectFilesTest, LargeSourcesHaveALayerOfTheirOwn) {
  put("small/a", "a");
  put("also/b", "b");
  put("large/c", std::string(kOwnFilesBytes, 'c'));
  const ProjectFiles files = collect("{small: /s, also: /b, large: /c}");
  ASSERT_EQ(files.parts.size(), 2U);
  EXPECT_EQ(files.parts[0].title, "project files at /c");
  EXPECT_EQ(files.parts[1].title, "project files");
  put("small/a", "changed");
  const ProjectFiles changed = collect("{small: /s, also: /b, large: /c}");
  EXPECT_EQ(changed.parts[0].digest, files.parts[0].digest);
  EXPECT_NE(changed.parts[1].digest, files.parts[1].digest);
  EXPECT_NE(changed.digest, files.digest);
}

TEST_F(ProjectFilesTest, GivesTheSameLayerWhateverTheMachineSaysOfTheFiles) {
  const mode_t umask_before = ::umask(0077);
  put("src/b", "b", 0600);
  put("src/a.sh", "a", 0700);
  put("src/deep/c", std::string(3 << 20U, 'c'), 0640);
  ::link((project() / "src/b").c_str(), (project() / "src/e").c_str());
  const ProjectFiles first = collect("{src: /w, src/b: /etc/b}");
  const Layer one = make(first, store_);
  fs::remove_all(project());
  ::umask(0002);
  put("src/deep/c", std::string(3 << 20U, 'c'), 0666);
  put("src/e", "b", 0644);
  put("src/a.sh", "a", 0777);
  put("src/b", "b", 0654);  // others may execute it, its owner may not
  ::chmod((project() / "src").c_str(), 02775);
  const timespec times[2] = {{1, 0}, {1'000'000, 0}};
  ::utimensat(AT_FDCWD, (project() / "src/b").c_str(), times, 0);
  const ProjectFiles second = collect("{src/b: /etc/b, src: /w}");
  EXPECT_EQ(first.digest, second.digest);
  const Layer two = make(second, store_);
  EXPECT_EQ(one, two);
  ::umask(umask_before);

  const std::unique_ptr<Source> blob = store_.open(one.blob.digest);
  StringSink tar;
  gunzip(*blob, tar);
  EXPECT_EQ(Digest::of(tar.text), one.diff_id);
  MemorySource source{as_bytes(tar.text)};
  std::map<std::string, std::uint32_t> modes;
  read_tar(source, [&](const TarEntry& entry, Source&) {
    EXPECT_EQ(entry.mtime, 42);
    EXPECT_EQ(entry.uid, 0U);
    EXPECT_EQ(entry.gid, 0U);
    EXPECT_TRUE(entry.xattrs.empty());
    EXPECT_NE(entry.type, TarEntry::Type::hardlink);
    modes[entry.path] = entry.mode;
  });
  const std::map<std::string, std::uint32_t> expected = {
      {"etc", 0755}, {"etc/b", 0644},  {"w", 0755},        {"w/a.sh", 0755},
      {"w/b", 0644}, {"w/deep", 0755}, {"w/deep/c", 0644}, {"w/e", 0644}};
  EXPECT_EQ(modes, expected);
  EXPECT_TRUE(store_.find_tree(one.diff_id));
  EXPECT_TRUE(store_.verify(/*repair=*/false, [](std::string_view) {}).empty());
}

TEST_F(ProjectFilesTest, DigestsTellApartWhatMatters) {
  put("src/a", "a");
  const std::optional<Digest> before = collect("{src: /w}").digest;
  EXPECT_NE(collect("{src: /v}").digest, before);
  put("src/a", "a", 0755);
  const std::optional<Digest> executable = collect("{src: /w}").digest;
  EXPECT_NE(executable, before);
  put("src/a", "b", 0644);
  EXPECT_NE(collect("{src: /w}").digest, before);
  fs::remove(project() / "src/a");
  fs::create_symlink("a", project() / "src/a");
  EXPECT_NE(collect("{src: /w}").digest, before);
  EXPECT_EQ(collect("{}").digest, std::nullopt);
}

TEST_F(ProjectFilesTest, ALinkIsNoWayRoundTheRulesOfNames) {
  put("real/.env", "SECRET=1");
  put("real/.aws/credentials", "k");
  fs::create_symlink("real/.env", project() / "settings");
  fs::create_symlink("real/.aws", project() / "keys");
  fs::create_symlink("real", project() / "alias");
  EXPECT_NE(refused("{settings: /s}").find("reached through a link: write `real/.env`"),
            std::string::npos);
  EXPECT_NE(refused("{keys: /k}").find("reached through a link"), std::string::npos);
  EXPECT_NE(refused("{alias/.env: /e}").find("reached through a link"), std::string::npos);
}

TEST_F(ProjectFilesTest, NothingArrivesWhereNothingCanBeCopiedTo) {
  put("over/tmp/f", "f");
  put("etc/hosts", "h");
  put("conf/hosts", "h");
  EXPECT_NE(refused("{over: /}").find("`over/tmp` where nothing can be copied to, `/tmp`"),
            std::string::npos);
  EXPECT_NE(refused("{etc: /etc}").find("`etc/hosts` where nothing"), std::string::npos);
  EXPECT_NE(refused("{conf/hosts: /etc/}").find("`conf/hosts` where nothing"), std::string::npos);
}

TEST_F(ProjectFilesTest, OurOwnUnfinishedFilesAreNotTheProjects) {
  put("a", "a");
  put(".tmp-0123abcd", "half a lock");
  put("sub/.tmp-kept", "k");
  EXPECT_EQ(paths("{.: /w}"), (PathList{"w", "w/a", "w/sub", "w/sub/.tmp-kept"}));
}

TEST_F(ProjectFilesTest, RespectsTheBasesFoldersAndLinks) {
  put("tool", "t");
  const auto code = [&](const std::string& files) {
    return code_of([&] { make(collect(files), store_); });
  };
  EXPECT_EQ(code("{tool: /bin/tool}"), "files-clash");
  EXPECT_EQ(code("{tool: /usr/bin}"), "files-clash");
  EXPECT_NO_THROW(make(collect("{tool: /usr/bin/}"), store_));
  // Through that link programs are found.
  EXPECT_EQ(code("{tool: /bin}"), "files-clash");
  // A file may take the place of a base's file.
  EXPECT_NO_THROW(make(collect("{tool: /etc/passwd}"), store_));
}

TEST_F(ProjectFilesTest, NoticesAFileThatChangesUnderIt) {
  put("src/a", "a");
  const ProjectFiles files = collect("{src: /w}");
  for (const std::string text : {"b", "ab", ""}) {
    put("src/a", text);
    try {
      make(files, store_);
      ADD_FAILURE() << "`" << text << "` was taken for `a`";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "file-changed");
      EXPECT_NE(std::string(error.what()).find("`src/a` changed"), std::string::npos);
    }
  }
  fs::remove(project() / "src/a");
  EXPECT_THROW(make(files, store_), Error);
  put("src/a", "a");  // the same content again
  EXPECT_NO_THROW(make(files, store_));
  EXPECT_TRUE(store_.verify(/*repair=*/false, [](std::string_view) {}).empty());
}

TEST_F(ProjectFilesTest, ALinkThatIsPutInAFoldersPlaceIsNotFollowed) {
  put("src/d/note", "the same");
  const fs::path elsewhere = project().parent_path() / "elsewhere";
  fs::create_directories(elsewhere);
  write_file(elsewhere / "note", "the same", /*durable=*/false);
  const ProjectFiles files = collect("{src: /w}");
  fs::rename(project() / "src/d", project() / "aside");
  fs::create_symlink(elsewhere, project() / "src/d");
  EXPECT_EQ(code_of([&] { make(files, store_); }), "file-changed");
}

TEST_F(ProjectFilesTest, KnowsWhereWhatABuildWritesWouldBeCopied) {
  put("src/a.py", "a");
  put(".mlenvignore", "src/out\n*.tar\n!src/deep/kept.tar\nimages\n!images/kept\n");
  fs::create_directories(folder_.path() / "elsewhere");
  fs::create_directory_symlink(project() / "src", folder_.path() / "link");
  const auto place = [&](const std::string& files, const fs::path& path) {
    return copied_place(recipe(files), path).value_or("nowhere");
  };
  const std::string files = "{src: /workspace}";
  EXPECT_EQ(place(files, project() / "src/image"), "src/image");
  EXPECT_EQ(place(files, project() / "src/./deep/../image/"), "src/image");
  EXPECT_EQ(place(files, folder_.path() / "link/image.oci"), "src/image.oci");
  EXPECT_EQ(place(files, project() / "src"), "src");
  EXPECT_EQ(place(files, project() / "src/out"), "nowhere");
  EXPECT_EQ(place(files, project() / "src/out/deep"), "nowhere");
  EXPECT_EQ(place(files, project() / "srcs"), "nowhere");
  EXPECT_EQ(place(files, project()), "nowhere");
  EXPECT_EQ(place(files, folder_.path() / "elsewhere/x"), "nowhere");
  EXPECT_EQ(place("{src/a.py: /workspace/}", project() / "src/a.py"), "src/a.py");
  EXPECT_EQ(place("{src/a.py: /workspace/}", project() / "src/b.py"), "nowhere");
  EXPECT_EQ(place("{.: /workspace}", project() / "a.oci"), "a.oci");
  EXPECT_EQ(place("{.: /workspace}", project() / "a.tar"), "nowhere");
  EXPECT_EQ(place("{.: /workspace}", project() / "src/deep/kept.tar"), "src/deep/kept.tar");
  EXPECT_EQ(place("{.: /workspace}", project() / "images/x"), "nowhere");
  EXPECT_EQ(place("{.: /workspace}", project() / "images"), "images");
  EXPECT_EQ(place("{.: /workspace}", project()), ".");
}

TEST_F(ProjectFilesTest, WhatNoPathReachesIsSaidOrLeftOut) {
  put("a.py", "1");
  make_deep_tree(project() / "runs", 300, "sixteen letters.");
  const FewDescriptors few;
  const std::string said = refused("{.: /app}", "bad-file");
  EXPECT_NE(said.find("lies too deep"), std::string::npos) << said;
  EXPECT_LT(said.size(), 700U);
  put(".mlenvignore", "runs\n");
  EXPECT_EQ(paths("{a.py: /app/}"), std::vector<std::string>{"app/a.py"});
  EXPECT_NO_THROW(collect("{.: /app}"));
}

TEST_F(ProjectFilesTest, ManyLevelsTakeFewDescriptors) {
  make_deep_tree(project() / "deep", 900);
  const FewDescriptors few;
  EXPECT_EQ(paths("{deep: /app}").size(), 1801U);
}

}  // namespace
}  // namespace mlenv
