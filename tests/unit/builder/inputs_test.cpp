#include "builder/inputs.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class InputsTest : public testing::Test {
 protected:
  /// Sources that have nothing.
  Inputs inputs() {
    InputSources nothing;
    nothing.wheel_urls = [](const std::vector<LockedWheel>&, bool) {
      return std::map<std::string, std::string>{};
    };
    nothing.deb_urls = [](const LockedDeb&) { return std::vector<std::string>{}; };
    return {store_, http_, nothing, folder_.path() / "cache", progress_};
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  Http http_;
  QuietProgress progress_;
  const LockedWheel wheel_{.name = "six",
                           .version = "1.17.0",
                           .file = "six-1.17.0-py2.py3-none-any.whl",
                           .size_bytes = 1,
                           .digest = Digest::of("six")};
};

TEST_F(InputsTest, NameWhatIsGone) {
  Inputs nowhere = inputs();
  try {
    nowhere.locate({wheel_});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "input-gone");
    EXPECT_NE(std::string(error.what()).find(wheel_.file), std::string::npos);
  }
  const LockedDeb deb{.name = "git",
                      .version = "1:2.39.5-0+deb12u2",
                      .architecture = "amd64",
                      .path = "pool/main/g/git/git_2.39.5_amd64.deb",
                      .size_bytes = 1,
                      .digest = Digest::of("git")};
  EXPECT_EQ(code_of([&] { nowhere.package(deb); }), "input-gone");
}

TEST_F(InputsTest, AWheelIsLocatedBeforeItIsTaken) {
  Inputs early = inputs();
  EXPECT_EQ(code_of([&] { early.wheel(wheel_); }), "unlocated");
}

}  // namespace
}  // namespace mlenv
