#include "images/inspect/linkage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/files.hpp"
#include "images/inspect/linkage_facts.hpp"
#include "images/inspect/waste.hpp"

namespace mlenv {
namespace {

ElfFile library(std::vector<std::string> needed, std::string runpath = "") {
  ElfFile elf;
  elf.machine = 62;
  elf.is_dynamic = true;
  elf.needed = std::move(needed);
  elf.runpath = std::move(runpath);
  return elf;
}

/// A layer in the making.
class Stack {
 public:
  Stack& elf(const std::string& path, ElfFile elf, std::uint64_t bytes = 10) {
    facts_.entries.push_back({"file", path, "", bytes});
    facts_.elves.push_back({path, std::move(elf)});
    return *this;
  }
  Stack& link(const std::string& path, const std::string& target) {
    facts_.entries.push_back({"link", path, target, 0});
    return *this;
  }
  Stack& entry(const std::string& kind, const std::string& path) {
    facts_.entries.push_back({kind, path, "", 0});
    return *this;
  }
  Stack& next() {
    const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::sort(facts_.entries.begin(), facts_.entries.end(), by_path);
    std::sort(facts_.elves.begin(), facts_.elves.end(), by_path);
    layers_.push_back(std::move(facts_));
    facts_ = {};
    return *this;
  }
  std::vector<LayerFacts> take() {
    next();
    return std::move(layers_);
  }

 private:
  LayerFacts facts_;
  std::vector<LayerFacts> layers_;
};

std::map<std::string, std::string> linked(const ImageTree& tree, const std::string& path,
                                          std::string_view library_path = "") {
  Linker linker{tree, library_path};
  std::map<std::string, std::string> found;
  for (const LinkedLibrary& one : linker.link(path).libraries) found[one.name] = one.path;
  return found;
}

using Found = std::map<std::string, std::string>;

TEST(Linker, OriginIsTheFolderOfTheFileThatSaysSo) {
  const ImageTree tree{Stack{}
                           .elf("opt/bin/tool", library({"liba.so"}, "$ORIGIN/../lib"))
                           .elf("opt/lib/liba.so", library({"libb.so"}, "${ORIGIN}/deep"))
                           .elf("opt/lib/deep/libb.so", library({}))
                           .take()};
  EXPECT_EQ(linked(tree, "opt/bin/tool"), (Found{{"liba.so", "/opt/bin/../lib/liba.so"},
                                                 {"libb.so", "/opt/bin/../lib/deep/libb.so"}}));
}

TEST(Linker, RunpathIsForTheFileAloneAndRpathForWhatItLoads) {
  ElfFile with_rpath = library({"libsys.so"});
  with_rpath.rpath = "/x";
  const auto tree_of = [](ElfFile main) {
    return Stack{}
        .elf("main", std::move(main))
        .elf("usr/lib64/libsys.so", library({"libc.so"}))
        .elf("x/libc.so", library({}))
        .take();
  };
  const ImageTree runpath{tree_of(library({"libsys.so"}, "/x"))};
  EXPECT_EQ(linked(runpath, "main"),
            (Found{{"libc.so", ""}, {"libsys.so", "/usr/lib64/libsys.so"}}));
  const ImageTree rpath{tree_of(with_rpath)};
  EXPECT_EQ(linked(rpath, "main"),
            (Found{{"libc.so", "/x/libc.so"}, {"libsys.so", "/usr/lib64/libsys.so"}}));
  EXPECT_EQ(linked(runpath, "main", "/nowhere:/x").at("libc.so"), "/x/libc.so");
}

TEST(Linker, CopiesForBetterProcessorsComeFirstTheBestOfThemBefore) {
  const auto found_with = [](const std::vector<std::string>& levels) {
    ElfFile main = library({"liba.so"}, "/x");
    main.bits = 64;
    ElfFile copy = library({});
    copy.bits = 64;
    Stack stack;
    stack.elf("main", main).elf("x/liba.so", copy);
    for (const std::string& level : levels) stack.elf("x/glibc-hwcaps/" + level + "/liba.so", copy);
    const ImageTree tree{stack.take()};
    return linked(tree, "main").at("liba.so");
  };
  EXPECT_EQ(found_with({}), "/x/liba.so");
  EXPECT_EQ(found_with({"x86-64-v2"}), "/x/glibc-hwcaps/x86-64-v2/liba.so");
  EXPECT_EQ(found_with({"x86-64-v2", "x86-64-v3"}), "/x/glibc-hwcaps/x86-64-v3/liba.so");
  EXPECT_EQ(found_with({"x86-64-v2", "x86-64-v3", "x86-64-v4"}),
            "/x/glibc-hwcaps/x86-64-v4/liba.so");
  EXPECT_EQ(found_with({"power10"}), "/x/liba.so");
}

TEST(Linker, LibraryPathLeadsToAFileByLinksToo) {
  const ImageTree tree{Stack{}
                           .elf("usr/local/cuda-13.0/compat/libcuda.so.580.65.06", library({}))
                           .link("usr/local/cuda-13.0/compat/libcuda.so.1", "libcuda.so.580.65.06")
                           .link("usr/local/cuda", "/etc/alternatives/cuda")
                           .link("etc/alternatives/cuda", "/usr/local/cuda-13.0")
                           .elf("other/libcuda.so.1", library({}))
                           .take()};
  const auto leads = [&](std::string_view library_path) {
    return Linker{tree, library_path}.is_in_library_path(
        "usr/local/cuda-13.0/compat/libcuda.so.580.65.06", "libcuda.so.1");
  };
  EXPECT_TRUE(leads("/usr/local/cuda-13.0/compat"));
  EXPECT_TRUE(leads("/usr/lib:/usr/local/cuda/compat/"));
  EXPECT_TRUE(leads("/usr/local/cuda/compat:/other"));
  EXPECT_FALSE(leads("/other:/usr/local/cuda/compat"));
  EXPECT_FALSE(leads("/usr/local/cuda/lib64"));
  EXPECT_FALSE(leads(""));
}

TEST(Linker, WhatIsLoadedAnswersToItsSoname) {
  ElfFile bundled = library({});
  bundled.soname = "libz.so.1";
  const ImageTree tree{Stack{}
                           .elf("a", library({"libz-123.so", "libuser.so"}, "/b"))
                           .elf("b/libuser.so", library({"libz.so.1"}))
                           .elf("b/libz-123.so", bundled)
                           .take()};
  EXPECT_EQ(linked(tree, "a"),
            (Found{{"libuser.so", "/b/libuser.so"}, {"libz-123.so", "/b/libz-123.so"}}));
}

TEST(Linker, OtherProcessorsAreNoAnswer) {
  ElfFile arm = library({});
  arm.machine = 183;
  const ImageTree tree{Stack{}
                           .elf("a", library({"libx.so"}, "/arm:/x86"))
                           .elf("arm/libx.so", arm)
                           .elf("x86/libx.so", library({}))
                           .take()};
  EXPECT_EQ(linked(tree, "a").at("libx.so"), "/x86/libx.so");
}

TEST(Linker, SaysWhichVersionsAreNotDefined) {
  ElfFile main = library({"libc++.so"}, "/l");
  main.version_needs = {{"libc++.so", {"GLIBCXX_3.4.30", "GLIBCXX_3.4.32"}}};
  ElfFile old = library({});
  old.versions = {"GLIBCXX_3.4.29", "GLIBCXX_3.4.30"};
  const ImageTree tree{Stack{}.elf("l/libc++.so", old).elf("main", main).take()};
  Linker linker{tree, ""};
  const Linkage linkage = linker.link("main");
  ASSERT_EQ(linkage.versions.size(), 1);
  EXPECT_EQ(linkage.versions[0].version, "GLIBCXX_3.4.32");
  EXPECT_EQ(linkage.versions[0].needed_by, "main");
}

TEST(ImageTree, LaterLayersReplaceAndHide) {
  const ImageTree tree{Stack{}
                           .elf("lib/a.so", library({}), 100)
                           .elf("lib/b.so", library({}), 20)
                           .elf("old/c.so", library({}), 3)
                           .next()
                           .elf("lib/a.so", library({"x"}), 7)
                           .entry("gone", "lib/b.so")
                           .entry("opaque", "old")
                           .elf("old/d.so", library({}), 1)
                           .take()};
  ASSERT_NE(tree.find("/lib/a.so"), nullptr);
  EXPECT_EQ(tree.find("/lib/a.so")->elf->needed.size(), 1);
  EXPECT_EQ(tree.find("/lib/b.so"), nullptr);
  EXPECT_EQ(tree.find("/old/c.so"), nullptr);
  EXPECT_NE(tree.find("/old/d.so"), nullptr);
  EXPECT_EQ(tree.all_bytes(), 131);
  const std::vector<Waste> expected = {{"shadowed", 123, 3}};
  EXPECT_EQ(waste_in(tree), expected);
}

TEST(ImageTree, LinksStayWithinTheImage) {
  const ImageTree tree{Stack{}
                           .elf("usr/lib/libz.so.1.2", library({}))
                           .link("lib", "usr/lib")
                           .link("usr/lib/libz.so.1", "libz.so.1.2")
                           .link("up", "../../../lib/libz.so.1")
                           .link("circle", "/circle")
                           .take()};
  EXPECT_EQ(tree.resolve("/lib/libz.so.1"), "usr/lib/libz.so.1.2");
  EXPECT_EQ(tree.resolve("up"), "usr/lib/libz.so.1.2");
  EXPECT_EQ(tree.resolve("circle"), std::nullopt);
  EXPECT_EQ(tree.resolve("lib"), std::nullopt);
}

TEST(LinkerCache, IsReadAsLdconfigWroteIt) {
  const auto text = read_file_if_exists("/etc/ld.so.cache");
  if (!text) GTEST_SKIP() << "this system has no /etc/ld.so.cache";
  const std::vector<CachedLibrary> libraries = read_linker_cache(*text);
  const auto libc = std::find_if(libraries.begin(), libraries.end(),
                                 [](const CachedLibrary& one) { return one.name == "libc.so.6"; });
  ASSERT_NE(libc, libraries.end());
  EXPECT_TRUE(fs::exists(libc->path)) << libc->path;
  for (const std::size_t size : {std::size_t{0}, std::size_t{40}, text->size() / 2}) {
    EXPECT_LT(read_linker_cache(text->substr(0, size)).size(), libraries.size());
  }
}

TEST(LayerFactsText, RoundTrip) {
  LayerFacts facts = Stack{}.elf("a", library({"b"}, "/c")).link("l\xff", "a").take().front();
  facts.texts.push_back({"etc/passwd", "root:x:0:0"});
  EXPECT_EQ(unpack_layer_facts(pack_layer_facts(facts)), facts);
  EXPECT_EQ(unpack_layer_facts("mlenv.layer-facts/0\n"), std::nullopt);
  std::string damaged = pack_layer_facts(facts);
  damaged.resize(damaged.size() / 2);
  EXPECT_EQ(unpack_layer_facts(damaged), std::nullopt);
}

TEST(LinkageFacts, WhatOnlyPluginsNeedIsOptional) {
  ElfFile program = library({"liba.so", "libgone.so"});
  program.interpreter = "/lib64/ld-linux-x86-64.so.2";
  const ImageTree tree{
      Stack{}
          .elf("usr/bin/tool", program)
          .elf("usr/lib64/liba.so", library({"libfar.so"}))
          .elf("usr/lib64/transport_mpi.so.3", library({"libmpi.so.40"}))
          .elf("opt/x/site-packages/x/_x.cpython-311-x86_64-linux-gnu.so", library({"libm9.so"}))
          .take()};
  ImageFacts facts;
  take_linkage(tree, 62, "", "files", facts);
  std::map<std::string, bool> optional;
  ASSERT_TRUE(facts.missing_libraries);
  for (const MissingLibrary& one : *facts.missing_libraries) optional[one.library] = one.optional;
  EXPECT_EQ(optional, (std::map<std::string, bool>{{"libgone.so", false},
                                                   {"libfar.so", false},
                                                   {"libm9.so", false},
                                                   {"libmpi.so.40", true}}));
}

}  // namespace
}  // namespace mlenv
