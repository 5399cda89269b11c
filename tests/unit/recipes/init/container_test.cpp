#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/scratch_folder.hpp"
#include "recipes/init/container_contents.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

std::string dpkg_stanza(const std::string& name, const std::string& fields = {}) {
  return "Package: " + name + "\nStatus: install ok installed\n" + fields + "\n";
}

TEST(AskedForPackages, AreRootsThatNobodyElseBrings) {
  const std::string status =
      dpkg_stanza("bash", "Essential: yes\nDepends: libtinfo6\n") + dpkg_stanza("libtinfo6") +
      dpkg_stanza("tzdata", "Priority: required\n") +
      dpkg_stanza("git", "Depends: libc6, perl (>= 5) | other\n") + dpkg_stanza("perl") +
      dpkg_stanza("libc6") + dpkg_stanza("libnone", "Recommends: git-man\n") +
      dpkg_stanza("git-man") + "Package: gone\nStatus: deinstall ok config-files\n\n";
  EXPECT_EQ(asked_for_packages(status, ""), (Strings{"git", "libnone"}));
  EXPECT_EQ(asked_for_packages(status, "Package: libnone\nAuto-Installed: 1\n"),
            (Strings{"git", "git-man"}));
  EXPECT_EQ(asked_for_packages(status, "Package: libnone\nAuto-Installed: 0\n"),
            (Strings{"git", "libnone"}));
  EXPECT_TRUE(asked_for_packages("", "").empty());
}

TEST(AskedForPackages, OfTwoThatNeedEachOtherOneStays) {
  EXPECT_EQ(
      asked_for_packages(dpkg_stanza("a", "Depends: b\n") + dpkg_stanza("b", "Depends: a\n"), ""),
      Strings{"a"});
}

TEST(AskedForPackages, HaveABound) {
  std::string status;
  for (int i = 0; i < 20'001; ++i) status += dpkg_stanza("p" + std::to_string(i));
  EXPECT_THROW(asked_for_packages(status, ""), Error);
}

class ContainerTest : public ::testing::Test {
 protected:
  void add(const std::string& path, const std::string& text = "") const {
    make_folders((root_.path() / path).parent_path());
    write_file(root_.path() / path, text, /*durable=*/false);
  }
  ContainerContents contents() const {
    ContainerContents all;
    all.shown = "docker:My_Lab";
    all.folder = root_.path();
    all.path = {"/opt/venv/bin", "/usr/local/bin", "/usr/bin"};
    return all;
  }
  static std::string told(const Draft& draft) {
    std::string text;
    for (const LeftOut& one : draft.left_out) text += sentence(one) + "\n";
    for (const LeftOut& one : draft.notes) text += sentence(one) + "\n";
    return text;
  }

  ScratchFolder root_;
};

TEST_F(ContainerTest, IsReadByItsRecords) {
  add("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n");
  add("var/lib/dpkg/status",
      dpkg_stanza("ffmpeg") +
          dpkg_stanza("libcudnn8", "Maintainer: cudatools <cudatools@nvidia.com>\n"));
  add("opt/venv/pyvenv.cfg", "version = 3.11.2\n");
  add("opt/venv/lib/python3.11/site-packages/numpy-1.26.4.dist-info/METADATA");
  add("usr/local/lib/python3.11/dist-packages/other-1.0.dist-info/METADATA");
  add("usr/lib/python3/dist-packages/apt-1.0.dist-info/METADATA");
  ContainerContents from = contents();
  from.env = {{"MODE", "fast"}, {"PYTHON_SHA256", "abc"}, {"NVIDIA_VISIBLE_DEVICES", "all"}};
  from.withheld = {"HF_TOKEN"};
  from.workdir = "/app";
  from.command = {"python3", "serve.py", "--port", "8000"};
  from.mounts = {"/data"};
  const Draft draft = convert_container(from, "");
  EXPECT_EQ(draft.name, "my_lab");
  EXPECT_EQ(draft.base, "debian:bookworm");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, Strings{"numpy==1.26.4"});
  EXPECT_EQ(draft.system, Strings{"ffmpeg"});
  EXPECT_EQ(draft.workdir, "/app");
  EXPECT_EQ(draft.command, from.command);
  ASSERT_EQ(draft.env.size(), 1U);
  EXPECT_EQ(draft.env.front().first, "MODE");
  const std::string said = told(draft);
  for (const char* one :
       {"libcudnn8", "HF_TOKEN", "/data", "/usr/local (1 Python package)", "/app"}) {
    EXPECT_NE(said.find(one), std::string::npos) << one << ": " << said;
  }
  EXPECT_EQ(said.find("apt"), std::string::npos) << said;
}

TEST_F(ContainerTest, WhatOnlyWaitsIsNoCommandAndAnotherDistributionIsTold) {
  add("etc/os-release", "ID=alpine\nVERSION_ID=3.20\nPRETTY_NAME=\"Alpine Linux v3.20\"\n");
  add("usr/local/lib/python3.12/site-packages/idna-3.7.dist-info/direct_url.json",
      R"({"url": "https://host.example/idna-3.7-py3-none-any.whl"})");
  ContainerContents from = contents();
  from.command = {"/bin/sleep", "infinity"};
  const Draft draft = convert_container(from, "");
  EXPECT_TRUE(draft.command.empty());
  EXPECT_TRUE(draft.base.empty());
  EXPECT_EQ(draft.packages, Strings{"idna @ https://host.example/idna-3.7-py3-none-any.whl"});
  EXPECT_NE(told(draft).find("Alpine Linux v3.20"), std::string::npos);
}

TEST_F(ContainerTest, WithoutOneInPathTheFullestEnvironmentIsTaken) {
  add("root/.pyenv/versions/3.11.5/lib/python3.11/site-packages/a-1.dist-info/METADATA");
  add("root/.pyenv/versions/3.11.5/lib/python3.11/site-packages/b-1.dist-info/METADATA");
  add("opt/z/lib/python3.9/site-packages/c-1.dist-info/METADATA");
  ContainerContents from = contents();
  from.path = {"/root/.pyenv/shims"};
  EXPECT_EQ(convert_container(from, "").packages, (Strings{"a==1", "b==1"}));
}

}  // namespace
}  // namespace mlenv
