#include "builder/run/run_step.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "builder/run/change_layer.hpp"
#include "builder/run/layer_stack.hpp"
#include "builder/run/lent_tree.hpp"
#include "builder/run/run_output.hpp"
#include "images/tree_paths.hpp"
#include "images/tree_writer.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {
namespace {

/// Trees with a few files: two layers, and what a program is said to have changed.
class RunStepTest : public ::testing::Test {
 protected:
  RunStepTest() : folder_(temporary_root(), "mlenv-run-"), store_(folder_.path() / "store") {
    for (const char* name : {"a", "b", "upper"}) fs::create_directory(folder_.path() / name);
  }
  fs::path tree(const char* name) const { return folder_.path() / name; }
  static void file(TreeWriter& tree, const char* path, std::string_view text,
                   std::uint32_t mode = 0644) {
    tree.add_file(path, {.mode = mode}, as_bytes(text));
  }
  LayerStack below() const { return LayerStack{{tree("a"), tree("b")}}; }

  struct Made {
    std::vector<std::string> entries;  ///< as `tar tv` has them
    std::map<std::string, std::string> files;
  };
  Made made(const Owners& before = {}, const Owners& after = {},
            const std::map<std::string, std::string>& secrets = {}) {
    LayerStack trees = below();
    const fs::path upper = tree("upper");
    const FileCapabilities none;
    const std::vector<std::string> lent = {"/etc/lent.conf"};
    Pool pool{1};
    const Layer layer = make_change_layer(
        {trees, upper, before, after, none, none, 7, lent, secrets}, store_, pool, "run: x");
    Made result;
    read_layer(
        store_, layer, [](std::uint64_t) {},
        [&](const TarEntry& entry, Source& data) {
          EXPECT_EQ(entry.mtime, 7);
          result.entries.push_back(fmt::format("{} {} {:o} {}:{}", entry.path,
                                               static_cast<int>(entry.type), entry.mode, entry.uid,
                                               entry.gid));
          if (entry.type == TarEntry::Type::file)
            result.files[entry.path] = read_all(data, 1U << 20U);
        });
    return result;
  }

  TemporaryFolder folder_;
  Store store_;
};

TEST_F(RunStepTest, TreesAreSeenAsOverlayfsStacksThem) {
  {
    TreeWriter a{tree("a")};
    file(a, "etc/x", "a");
    file(a, "etc/y", "a");
    file(a, "opt/old/z", "a");
    file(a, "lib/file", "a");
    a.finish();
    TreeWriter b{tree("b")};
    file(b, "etc/x", "b");
    b.add_whiteout("etc/y");
    b.add_folder("opt/old", {.mode = 0755});
    b.mark_opaque("opt/old");
    b.add_symlink("lib", "etc", {});
    b.finish();
  }
  LayerStack trees = below();
  EXPECT_EQ(trees.find("etc/x").value().path, tree("b") / "etc/x");
  EXPECT_FALSE(trees.find("etc/y"));
  EXPECT_TRUE(trees.find("opt/old"));
  EXPECT_FALSE(trees.find("opt/old/z"));
  EXPECT_TRUE(S_ISLNK(trees.find("lib").value().status.st_mode));
  EXPECT_FALSE(trees.find("lib/x")) << "a link on the way was followed";
  EXPECT_FALSE(trees.find("lib/file"));
  EXPECT_TRUE(trees.find(""));
}

TEST_F(RunStepTest, ALayerHoldsWhatIsDifferentAndNothingElse) {
  {
    TreeWriter a{tree("a")};
    file(a, "etc/same", "same");
    file(a, "etc/changed", "before");
    file(a, "etc/mode", "mode");
    file(a, "etc/gone", "x");
    file(a, "etc/lent.conf", "x");
    file(a, "etc/owned", "of another");
    file(a, "usr/doc/old", "x");
    file(a, "var/untouched", "x");
    a.finish();
    TreeWriter upper{tree("upper")};
    file(upper, "etc/same", "same");
    file(upper, "etc/changed", "after!");
    file(upper, "etc/mode", "mode", 0755);
    upper.add_whiteout("etc/gone");
    upper.add_whiteout("etc/never-there");
    file(upper, "etc/lent.conf", "y");
    file(upper, "etc/resolv.conf", "y");
    file(upper, "tmp/left", "x");
    file(upper, "run/left", "x");
    file(upper, "usr/doc/new", "new");
    upper.mark_opaque("usr/doc");
    file(upper, "new/file", "content");
    upper.add_hardlink("new/link", "new/file");
    upper.mark_opaque("new");  // as overlayfs marks every new folder
    upper.finish();
  }
  const Made layer = made({{"/etc/owned", {0, 42}}}, {{"/etc/changed", {7, 8}}});
  EXPECT_EQ(layer.entries,
            (std::vector<std::string>{"etc 1 755 0:0", "etc/changed 0 644 7:8",
                                      "etc/.wh.gone 0 644 0:0", "etc/mode 0 755 0:0",
                                      "etc/owned 0 644 0:0", "new 1 755 0:0", "new/file 0 644 0:0",
                                      "new/link 3 644 0:0", "usr 1 755 0:0", "usr/doc 1 755 0:0",
                                      "usr/doc/.wh..wh..opq 0 644 0:0", "usr/doc/new 0 644 0:0"}));
  EXPECT_EQ(layer.files.at("etc/changed"), "after!");
  EXPECT_EQ(layer.files.at("etc/owned"), "of another");
}

TEST_F(RunStepTest, AStepWithoutChangesHasAnEmptyLayer) { EXPECT_TRUE(made().entries.empty()); }

TEST_F(RunStepTest, ASecretInAFileIsRefused) {
  {
    TreeWriter upper{tree("upper")};
    file(upper, "root/.netrc", std::string(100000, 'x') + "machine a password hunter2222 y");
    upper.finish();
  }
  try {
    made({}, {}, {{"netrc", "password hunter2222\n"}});
    FAIL() << "it is in the layer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "secret-stored");
    EXPECT_EQ(std::string(error.what()).find("hunter"), std::string::npos);
  }
  EXPECT_FALSE(made({}, {}, {{"other", "password of another"}}).entries.empty());
}

TEST_F(RunStepTest, OwnersComeFromTheTopmostLayerThatSaysSo) {
  const auto entry = [](std::string path, TarEntry::Type type, std::uint64_t gid) {
    TarEntry one;
    one.path = std::move(path);
    one.type = type;
    one.gid = gid;
    return one;
  };
  using Type = TarEntry::Type;
  ImageOwners owners;
  owners.add(entry("etc/shadow", Type::file, 42));
  owners.add(entry("var/mail", Type::folder, 8));
  owners.add(entry("var/mail/x", Type::file, 8));
  owners.add(entry("srv/a", Type::folder, 9));
  owners.add(entry("srv/a/b", Type::file, 9));
  owners.add(entry("srv/ab", Type::file, 9));
  owners.add(entry("etc/shadow", Type::file, 0));
  owners.add(entry("var/mail/.wh..wh..opq", Type::file, 0));
  owners.add(entry("srv/.wh.a", Type::file, 0));
  EXPECT_EQ(owners.owners(), (Owners{{"/srv/ab", {0, 9}}, {"/var/mail", {0, 8}}}));
}

TEST_F(RunStepTest, FoldersThatOnlyTheirOwnerMayListAreKnown) {
  const auto folder = [](std::string path, std::uint32_t mode, std::uint64_t uid,
                         std::uint64_t gid) {
    TarEntry one;
    one.path = std::move(path);
    one.type = TarEntry::Type::folder;
    one.mode = mode;
    one.uid = uid;
    one.gid = gid;
    return one;
  };
  ImageOwners owners;
  owners.add(folder("home/open", 0755, 7, 7));
  owners.add(folder("home/shut", 0700, 7, 7));
  owners.add(folder("home/listed", 0744, 7, 7));
  owners.add(folder("home/group", 0750, 7, 0));
  owners.add(folder("home/group-less", 0705, 7, 0));
  owners.add(folder("home/root", 0700, 0, 7));
  owners.add(folder("root", 0700, 0, 0));
  owners.add(folder("home/later", 0700, 7, 7));
  owners.add(folder("home/later", 0755, 0, 0));  // the lower layer's is as it was
  owners.add(folder("home/gone", 0700, 7, 7));
  TarEntry gone;
  gone.path = "home/.wh.gone";
  owners.add(gone);
  EXPECT_EQ(owners.shut_folders(), (std::set<std::string>{"/home/group-less", "/home/later",
                                                          "/home/listed", "/home/shut"}));
}

TEST_F(RunStepTest, WhatAFolderHoldsIsThatOfAllTrees) {
  {
    TreeWriter a{tree("a")};
    file(a, "etc/x", "a");
    file(a, "etc/y", "a");
    a.finish();
    TreeWriter b{tree("b")};
    file(b, "etc/z", "b");
    b.add_whiteout("etc/y");
    b.finish();
  }
  LayerStack trees = below();
  EXPECT_EQ(trees.entries("etc"), (std::vector<std::string>{"etc/x", "etc/z"}));
  EXPECT_EQ(trees.entries(""), std::vector<std::string>{"etc"});
  EXPECT_TRUE(trees.entries("absent").empty());
}

TEST_F(RunStepTest, AFolderThatCannotBeListedIsLentWhole) {
  {
    TreeWriter a{tree("a")};
    a.add_folder("home/bob", {.mode = 0700});
    a.add_folder("home/bob/sub", {.mode = 0750});
    file(a, "home/bob/sub/x", "of a");
    file(a, "home/bob/gone", "of a");
    file(a, "home/other", "of a");
    a.finish();
    TreeWriter b{tree("b")};
    file(b, "home/bob/script", "of b", 0755);
    b.add_symlink("home/bob/link", "sub/x", {});
    b.add_whiteout("home/bob/gone");
    b.finish();
    fs::permissions(tree("b") / "home/bob", fs::perms{0700});
  }
  LayerStack trees = below();
  LentTree lent{tree("lent"), trees};
  lent.disown_whole("home/bob");
  lent.disown_whole("home/bob/sub");
  lent.disown("home/bob/script");
  lent.disown_whole("home/other");  // no folder
  lent.disown_whole("home/absent");
  lent.finish();
  EXPECT_EQ(read_file(tree("lent") / "home/bob/sub/x"), "of a");
  EXPECT_EQ(read_file(tree("lent") / "home/bob/script"), "of b");
  EXPECT_EQ(fs::read_symlink(tree("lent") / "home/bob/link"), "sub/x");
  EXPECT_FALSE(fs::exists(tree("lent") / "home/bob/gone"));
  EXPECT_FALSE(fs::exists(tree("lent") / "home/other"));
  EXPECT_TRUE(has_opaque_mark(tree("lent") / "home/bob"));
  EXPECT_FALSE(has_opaque_mark(tree("lent") / "home"));
  const auto mode = [&](const char* path) {
    return fs::status(tree("lent") / path).permissions() & fs::perms::mask;
  };
  EXPECT_EQ(mode("home/bob"), fs::perms{0700});
  EXPECT_EQ(mode("home/bob/sub"), fs::perms{0750});
  EXPECT_EQ(mode("home/bob/script"), fs::perms{0755});
}

TEST_F(RunStepTest, WhatIsLentIsNamedAndKeepsTheFoldersModes) {
  {
    TreeWriter a{tree("a")};
    a.add_folder("root", {.mode = 0700});
    file(a, "etc/os-release", "ID=debian\n");
    file(a, "etc/shadow", "s", 0640);
    a.finish();
  }
  LayerStack trees = below();
  LentTree lent{tree("lent"), trees};
  lent.disown("etc/shadow");
  lent.add_folder("workspace");
  lent.offer("etc/os-release", "other");
  lent.lend(tree("view"), [](const fs::path& view) {
    EXPECT_EQ(read_file(view / "etc/os-release"), "ID=debian\n");
    make_folders(view / "root/.config/pip");
    write_file(view / "root/.config/pip/pip.conf", "x", false);
  });
  lent.finish();
  EXPECT_EQ(lent.lent(), (std::vector<std::string>{"/root/.config/pip/pip.conf"}));
  EXPECT_FALSE(fs::exists(tree("lent") / "etc/os-release"));
  struct stat status {};
  ASSERT_EQ(::stat((tree("lent") / "root").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  ASSERT_EQ(::stat((tree("lent") / "etc/shadow").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
  EXPECT_TRUE(fs::is_directory(tree("lent") / "workspace"));
}

TEST(RunOutput, HidesSecretsAndTheirLines) {
  const Redaction redact{{{"a", "first-line\nab\nsecond-line\n"}, {"b", "xy"}}};
  EXPECT_EQ(redact("1 first-line\nab\nsecond-line 2 second-line ab xy"), "1 *** 2 *** ab xy");
}

TEST(RunOutput, ShowsTheLastLinesAndMissesOfTheNetwork) {
  std::string output;
  for (int i = 1; i <= 30; ++i) output += fmt::format("line {}\n", i);
  output += "10%\r100%\ncurl: (6) Could not resolve host: a.example\n";
  const Error error =
      step_error({"`run` step 1, `curl`,", "r.yaml:3:5", {6, false}, output, false});
  const std::string text = error.what();
  EXPECT_EQ(error.code(), "step-failed");
  EXPECT_NE(text.find("r.yaml:3:5"), std::string::npos);
  EXPECT_NE(text.find("it ended with status 6"), std::string::npos);
  EXPECT_EQ(text.find("line 12\n"), std::string::npos);
  EXPECT_NE(text.find("line 13\n"), std::string::npos);
  EXPECT_NE(text.find("    100%\n"), std::string::npos);
  EXPECT_NE(error.hint().find("network: true"), std::string::npos);
  EXPECT_TRUE(step_error({"x", "", {1, false}, output, true}).hint().empty());
  EXPECT_NE(std::string(step_error({"x", "", {137, true}, "", false}).what()).find("signal 9"),
            std::string::npos);
}

TEST(RunTitle, IsOneShortLine) {
  EXPECT_EQ(run_title({{"make -C /workspace/ext"}, false, {}}), "run: make -C /workspace/ext");
  EXPECT_EQ(run_title({{"one\ntwo"}, false, {}}), "run: one …");
  EXPECT_EQ(run_title({{std::string(59, 'a') + "ä"}, false, {}}),
            "run: " + std::string(59, 'a') + " …");
}

TEST(RunKey, IsOfAllThatAStepSeesAndOfNoSecret) {
  RunStep step{{"make"}, false, {"netrc"}};
  Layer layer{
      .blob = {"", Digest::of("blob"), 1}, .diff_id = Digest::of("a"), .tar_bytes = 0, .title = ""};
  std::vector<Layer> below = {layer};
  const ImageOwners owners;
  RunOptions options;
  const auto key = [&](std::vector<std::string> env = {"A=1"}, std::string workdir = "/w") {
    return run_key({step, 0, below, owners, std::move(env), std::move(workdir), 0, options});
  };
  const Digest first = key();
  options.secrets["netrc"] = "other";
  options.places = {"elsewhere:1:1"};
  EXPECT_EQ(key(), first);
  EXPECT_NE(key({"A=2"}), first);
  EXPECT_NE(key({"A=1"}, "/x"), first);
  step.network = true;
  EXPECT_NE(key(), first);
  step.network = false;
  step.secrets = {"other"};
  EXPECT_NE(key(), first);
  step.secrets = {"netrc"};
  below.push_back(layer);
  EXPECT_NE(key(), first);
}

TEST(RunSecrets, AreAskedForByNameAndPlace) {
  RunOptions options;
  options.places = {"r.yaml:4:5"};
  const RunStep step{{"make"}, false, {"netrc"}};
  try {
    require_secrets(step, 0, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-secret");
    EXPECT_NE(std::string(error.what()).find("r.yaml:4:5"), std::string::npos);
  }
  options.secrets["netrc"] = "x";
  require_secrets(step, 0, options);
}

}  // namespace
}  // namespace mlenv
