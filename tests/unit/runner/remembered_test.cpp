#include "runner/facts/remembered.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

class Remembered : public ::testing::Test {
 protected:
  Remembered() {
    from_.ask = [this](const std::vector<std::string>& argv) {
      asked_.push_back(argv);
      return answer_;
    };
  }
  FactSources sources() { return with_remembered_versions(from_, OwnFolder{folder_.path() / "v"}); }
  std::string program(const std::string& name, std::string_view bytes) {
    const fs::path path = folder_.path() / name;
    write_file(path, bytes);
    return path.string();
  }

  TemporaryFolder folder_{temporary_root(), "remembered-"};
  FactSources from_;
  Text answer_ = known<std::string>("crun version 1.8.1\n", "crun");
  std::vector<std::vector<std::string>> asked_;
};

TEST_F(Remembered, AsksAProgramOfMachineCodeOnce) {
  const std::string crun = program("crun", "\177ELF and more");
  EXPECT_EQ(sources().ask({crun, "--version"}).value, "crun version 1.8.1\n");
  const Text again = sources().ask({crun, "--version"});
  EXPECT_EQ(again.value, "crun version 1.8.1\n");
  EXPECT_EQ(again.source, crun + " --version");
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(Remembered, AsksAgainWhenItsFileIsAnother) {
  const std::string crun = program("crun", "\177ELF and more");
  (void)sources().ask({crun, "--version"});
  (void)program("crun", "\177ELF of the next version");  // takes its place: another inode
  answer_ = known<std::string>("crun version 1.9\n", "crun");
  EXPECT_EQ(sources().ask({crun, "--version"}).value, "crun version 1.9\n");
}

TEST_F(Remembered, AsksScriptsFailuresAndOtherQuestionsEachTime) {
  const std::string script = program("podman", "#!/bin/sh\nexec docker \"$@\"\n");
  const std::string crun = program("crun", "\177ELF and more");
  for (int i = 0; i < 2; ++i) {
    (void)sources().ask({script, "--version"});
    (void)sources().ask({crun, "features"});
  }
  EXPECT_EQ(asked_.size(), 4U);
  answer_ = unknown<std::string>("it fails");
  EXPECT_FALSE(sources().ask({crun, "--version"}));
  EXPECT_FALSE(sources().ask({crun, "--version"}));
  EXPECT_EQ(asked_.size(), 6U);
}

}  // namespace
}  // namespace mlenv
