#include "recipes/resolve/wheel_hashes.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

const WheelTags kTags("3.11", "2.36", "amd64");

Digest digest_of(const std::string& file) { return Digest::of(file); }

PylockPackage torch_package(const std::string& version, const std::vector<std::string>& files) {
  PylockPackage made{"torch", version, {}, false};
  for (const std::string& file : files) made.wheels.push_back({file, "u", digest_of(file), 1});
  return made;
}

class WheelHashes : public testing::Test {
 protected:
  WheelHashes() {
    place_.file = std::make_shared<const RequirementsText>(
        RequirementsText{"r.txt", "torch==2.9.0 --hash=…\n"});
    place_.line = 1;
    place_.column = 1;
  }
  void promise(const std::string& version, const std::string& file) {
    listed_.add_hashes({"torch", version}, {digest_of(file).hex()}, place_);
  }
  /// Names of the wheels that are left; the code of the error where there is one.
  std::vector<std::string> kept(PylockPackage one) const {
    std::vector<PylockPackage> all = {std::move(one)};
    try {
      keep_promised_wheels(all, listed_, kTags);
    } catch (const Error& error) {
      return {error.code()};
    }
    std::vector<std::string> files;
    for (const PylockWheel& wheel : all.front().wheels) files.push_back(wheel.file);
    return files;
  }

  ListedText place_;
  RequirementLists listed_;
};

TEST_F(WheelHashes, OnlyPromisedWheelsAreLeft) {
  const std::string any = "torch-2.9.0-py3-none-any.whl";
  const std::string own = "torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl";
  EXPECT_EQ(kept(torch_package("2.9.0", {any, own})), (Strings{any, own}));
  promise("2.9", any);
  EXPECT_EQ(kept(torch_package("2.9.0", {any, own})),
            (Strings{any}));  // although the other fits better
  promise("2.9", own);
  EXPECT_EQ(kept(torch_package("2.9.0", {any, own})), (Strings{any, own}));
  EXPECT_EQ(kept(torch_package("2.10.0", {any})), (Strings{any}));  // another release
}

TEST_F(WheelHashes, OtherBytesAreAnErrorAlsoOfALocalBuild) {
  const std::string build = "torch-2.9.0+cu130-py3-none-any.whl";
  promise("2.9.0", "torch-2.9.0-py3-none-any.whl");
  EXPECT_EQ(kept(torch_package("2.9.0", {"torch-2.9.0-1-py3-none-any.whl"})),
            (Strings{"hash-mismatch"}));
  EXPECT_EQ(kept(torch_package("2.9.0+cu130", {build})), (Strings{"hash-mismatch"}));
  promise("2.9.0+cu130", build);
  EXPECT_EQ(kept(torch_package("2.9.0+cu130", {build})), (Strings{build}));
  // What has no wheel for the image has another error.
  EXPECT_EQ(kept(torch_package("2.9.0", {"torch-2.9.0-cp312-cp312-win_amd64.whl"})), (Strings{}));
}

TEST_F(WheelHashes, AllMustHaveOneWhereAllAreAskedFor) {
  listed_.all_hashed = place_;
  EXPECT_EQ(kept(torch_package("2.9.0", {"torch-2.9.0-py3-none-any.whl"})), (Strings{"no-hash"}));
}

TEST_F(WheelHashes, ASourceMustHaveOneBeforeItIsBuilt) {
  const std::string file = "torch-2.9.0.tar.gz";
  const SourceRelease source{"torch", "2.9.0", file, "u", digest_of(file), 1};
  const auto code = [&] { return code_of([&] { require_promised(source, listed_); }); };
  EXPECT_EQ(code(), "none");
  listed_.all_hashed = place_;
  EXPECT_EQ(code(), "no-hash");
  promise("2.9.0", "torch-2.9.0-py3-none-any.whl");
  EXPECT_EQ(code(), "hash-mismatch");
  promise("2.9.0", file);
  EXPECT_EQ(code(), "none");
}

}  // namespace
}  // namespace mlenv
