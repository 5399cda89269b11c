#include "runner/repeat/outputs.hpp"

#include <gtest/gtest.h>

#include "runner/repeat/compare_outputs.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class Outputs : public testing::Test {
 protected:
  Outputs() {
    make_folders(root_ / "project/sub");
    make_folders(root_ / "data");
    make_folders(root_ / "large");
    run_.project = root_ / "project";
    run_.mounts = {{root_ / "data", "/data", true}, {root_ / "large", "/workspace/large", false}};
  }
  PlacedOutput place(const std::string& path) const { return placed_outputs(run_, {path}).at(0); }
  std::string refusal_of(const std::vector<std::string>& paths) const {
    return code_of([&] { (void)placed_outputs(run_, paths); });
  }

  TemporaryFolder folder_{temporary_root()};
  fs::path root_ = folder_.path();
  LocalRun run_;
};

TEST_F(Outputs, LieInTheInnermostMount) {
  const PlacedOutput plain = place("out/model.npy");
  EXPECT_EQ(plain.target, "/workspace/out/model.npy");
  EXPECT_EQ(plain.on_host, root_ / "project/out/model.npy");
  EXPECT_EQ(plain.mount, 0U);
  EXPECT_EQ(plain.within, "out/model.npy");
  const PlacedOutput large = place("/workspace/large/x/");
  EXPECT_EQ(large.on_host, root_ / "large/x");
  EXPECT_EQ(large.mount, 2U);
  EXPECT_EQ(place("large").within, "");
  run_.workdir = "sub";
  EXPECT_EQ(place("x").on_host, root_ / "project/sub/x");
  EXPECT_EQ(place("../x").on_host, root_ / "project/x");
}

TEST_F(Outputs, WhatWouldBeGoneOrCannotBeWrittenIsRefused) {
  EXPECT_EQ(refusal_of({"/tmp/x"}), "bad-run-output");
  EXPECT_EQ(refusal_of({"/data/x"}), "bad-run-output");
  EXPECT_EQ(refusal_of({"."}), "bad-run-output");
  EXPECT_EQ(refusal_of({""}), "bad-run-output");
  EXPECT_EQ(refusal_of({"out", "out/x"}), "bad-run-output");
  EXPECT_EQ(refusal_of({"out", "./out"}), "bad-run-output");
  EXPECT_EQ(refusal_of({"out", "outer"}), "none");
  fs::create_directory_symlink(root_ / "data", root_ / "project/link");
  EXPECT_EQ(refusal_of({"link/x"}), "bad-run-output");
}

TEST_F(Outputs, AFoldersDigestIsThatOfItsFiles) {
  const fs::path out = root_ / "project/out";
  make_folders(out / "b");
  write_file(out / "b/2", "two");
  write_file(out / "a", "one");
  const RecordedOutput output = read_output("out", out);
  EXPECT_EQ(output.kind, "folder");
  EXPECT_EQ(output.size_bytes, 6U);
  ASSERT_EQ(output.files.size(), 2U);
  EXPECT_EQ(output.files[0].path, "a");
  EXPECT_EQ(output.files[1].path, "b/2");
  // find -L . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum -z | sha256sum
  const std::string list = Digest::of("one").hex() + "  a" + std::string(1, '\0') +
                           Digest::of("two").hex() + "  b/2" + std::string(1, '\0');
  EXPECT_EQ(output.digest, Digest::of(list).str());
}

TEST_F(Outputs, KindsOfOutputs) {
  EXPECT_EQ(read_output("x", root_ / "x").kind, "absent");
  write_file(root_ / "x", "one");
  EXPECT_EQ(read_output("x", root_ / "x").digest, Digest::of("one").str());
  fs::create_symlink("elsewhere", root_ / "link");
  EXPECT_EQ(read_output("link", root_ / "link").kind, "link");
  const RecordedOutput device = read_output("null", "/dev/null");
  EXPECT_EQ(device.kind, "unreadable");
  EXPECT_TRUE(device.why);
}

TEST_F(Outputs, AreNotReadThroughLinksThatTheRunMade) {
  make_folders(root_ / "project/out");
  make_folders(root_ / "elsewhere");
  write_file(root_ / "elsewhere/model", "of somebody else");
  const std::vector<PlacedOutput> outputs = placed_outputs(run_, {"out/model"});
  fs::remove(root_ / "project/out");
  fs::create_directory_symlink(root_ / "elsewhere", root_ / "project/out");
  const RecordedOutput output = read_outputs(outputs).at(0);
  EXPECT_EQ(output.kind, "unreadable");
  EXPECT_TRUE(output.files.empty());
  EXPECT_EQ(output.size_bytes, 0U);
}

TEST_F(Outputs, AreComparedFileByFile) {
  const fs::path before = root_ / "before";
  const fs::path after = root_ / "after";
  for (const fs::path& one : {before, after}) {
    make_folders(one);
    write_file(one / "same", "x");
  }
  write_file(before / "changed", "abc");
  write_file(after / "changed", "abX");
  write_file(before / "gone", "1");
  write_file(after / "more", "12");
  const auto files = compare_output(read_output("out", before), read_output("out", after));
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0], (ComparedFile{"out/changed", "changed", "differs", 3, 3, {}}));
  EXPECT_EQ(files[1], (ComparedFile{"out/gone", "gone", "missing", 1, {}, {}}));
  EXPECT_EQ(files[2], (ComparedFile{"out/more", "more", "new", {}, 2, {}}));
  EXPECT_EQ(files[3], (ComparedFile{"out/same", "same", "same", 1, 1, {}}));
}

TEST_F(Outputs, ComparedWhereThereIsNothing) {
  const auto verdict = [&](const fs::path& a, const fs::path& b) {
    return compare_output(read_output("x", a), read_output("x", b)).front().what;
  };
  make_folders(root_ / "empty");
  EXPECT_EQ(verdict(root_ / "absent", root_ / "absent"), "same");
  EXPECT_EQ(verdict(root_ / "empty", root_ / "empty"), "same");
  EXPECT_EQ(verdict(root_ / "empty", root_ / "absent"), "differs");
  EXPECT_EQ(verdict("/dev/null", "/dev/null"), "differs");
}

TEST_F(Outputs, TheFirstDifference) {
  const auto difference = [&](const std::string& a, const std::string& b) {
    write_file(root_ / "a", a);
    write_file(root_ / "b", b);
    return first_difference(root_ / "a", root_ / "b");
  };
  EXPECT_EQ(difference("abc", "abc"), std::nullopt);
  EXPECT_EQ(difference("abc", "aXc"), 1U);
  EXPECT_EQ(difference("abc", "abcd"), 3U);
  const std::string large(200000, 'x');
  EXPECT_EQ(difference(large, large), std::nullopt);
  EXPECT_EQ(difference(large + "a", large + "b"), 200000U);
  EXPECT_EQ(difference(large, large + "b"), 200000U);
}

TEST(HostDifferences, SaysWhatIsKnownOfBoth) {
  Facts then;
  Facts now;
  then.cpu.model = known<std::string>("A", "");
  now.cpu.model = known<std::string>("B", "");
  then.system.kernel = known<std::string>("6.1", "");
  EXPECT_EQ(host_differences(then, now), std::vector<std::string>{"processor: A, now B"});
}

}  // namespace
}  // namespace mlenv
