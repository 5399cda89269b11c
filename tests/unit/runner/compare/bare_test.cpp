#include "runner/compare/bare.hpp"

#include <gtest/gtest.h>
#include <fstream>

#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::compare {
namespace {

TEST(CompareBare, ScriptsSayWhatRunsThem) {
  EXPECT_EQ(words_of_script("#!/bin/sh\necho"), Strings{"/bin/sh"});
  EXPECT_EQ(words_of_script("#! /usr/bin/env python3\n"), (Strings{"/usr/bin/env", "python3"}));
  EXPECT_EQ(words_of_script("#!/usr/bin/python3 -E -s\nx"), (Strings{"/usr/bin/python3", "-E -s"}));
  EXPECT_EQ(words_of_script("\x7f"
                            "ELF"),
            Strings{});
  EXPECT_EQ(words_of_script(""), Strings{});
}

class CompareBareImage : public testing::Test {
 protected:
  CompareBareImage() : folder_(temporary_root()) {
    put("usr/bin/tool",
        "\x7f"
        "ELF…",
        0755);
    put("usr/bin/script", "#!/usr/bin/env tool\n", 0755);
    put("usr/bin/notes", "no program", 0644);
    put("usr/bin/text", "neither", 0755);
    put("lib64/ld-linux-x86-64.so.2", "loader", 0755);
    put("usr/lib/x86_64-linux-gnu/libx.so.1", "library", 0644);
    fs::create_symlink("/etc/alternatives/x", layer() / "usr/lib/libx.so");
    fs::create_directories(root());
    config_.env = {"PATH=/usr/bin", "A=b", "PYTHONPATH=/elsewhere"};
  }
  fs::path layer() const { return folder_.path() / "layer"; }
  fs::path root() const { return folder_.path() / "root"; }
  void put(const char* path, std::string_view text, int mode) const {
    make_folders((layer() / path).parent_path());
    write_file(layer() / path, text, false);
    fs::permissions(layer() / path, static_cast<fs::perms>(mode));
  }
  BareImage image() const { return {{layer()}, config_, root(), Filled::with_links}; }

  TemporaryFolder folder_;
  ImageConfig config_;
};

TEST_F(CompareBareImage, ProgramsAreStartedByTheImagesOwnLoader) {
  const Command command = image().command({"tool", "--x"}, "/tmp");
  const std::string libraries =
      (root() / "usr/lib/x86_64-linux-gnu").string() + ":" + (root() / "usr/lib").string();
  EXPECT_EQ(command.argv, (Strings{(root() / "lib64/ld-linux-x86-64.so.2").string(),
                                   "--inhibit-cache", "--library-path", libraries, "--argv0",
                                   "tool", (root() / "usr/bin/tool").string(), "--x"}));
  EXPECT_EQ(command.folder, "/tmp");
  EXPECT_EQ(*command.env,
            (Strings{"PATH=/usr/bin", "A=b", "HOME=/tmp", "PYTHONDONTWRITEBYTECODE=1"}));
}

TEST_F(CompareBareImage, ScriptsByTheProgramThatTheyName) {
  const Command command = image().command({"/usr/bin/script", "y"}, "/tmp");
  ASSERT_GT(command.argv.size(), 3U);
  EXPECT_EQ(command.argv[command.argv.size() - 3], (root() / "usr/bin/tool").string());
  EXPECT_EQ(command.argv[command.argv.size() - 2], (root() / "usr/bin/script").string());
  EXPECT_EQ(command.argv.back(), "y");
}

TEST_F(CompareBareImage, WhatCannotBeStartedIsSaid) {
  const BareImage bare = image();
  for (const char* const name : {"absent", "notes", "text"}) {
    EXPECT_EQ(code_of([&] { (void)bare.command({name}, "/tmp"); }), "cannot-start") << name;
  }
}

TEST_F(CompareBareImage, CopiesCanBeWrittenWithoutTheStoresFiles) {
  const BareImage copies({layer()}, config_, root(), Filled::with_copies);
  EXPECT_EQ(fs::status(root() / "usr/bin/script").permissions(), static_cast<fs::perms>(0755));
  std::ofstream(root() / "usr/bin/notes") << "changed in place";
  EXPECT_EQ(read_file(layer() / "usr/bin/notes"), "no program");
  EXPECT_EQ(copies.command({"tool"}, "/tmp").argv.back(), (root() / "usr/bin/tool").string());
}

TEST_F(CompareBareImage, AbsoluteLinksStayWithinTheImage) {
  (void)image();
  EXPECT_EQ(fs::read_symlink(root() / "usr/lib/libx.so"), root() / "etc/alternatives/x");
  EXPECT_EQ(fs::read_symlink(layer() / "usr/lib/libx.so"), "/etc/alternatives/x") << "the store's";
}

}  // namespace
}  // namespace mlenv::compare
