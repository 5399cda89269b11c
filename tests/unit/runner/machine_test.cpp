#include "runner/local/machine.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class MachineTest : public testing::Test {
 protected:
  MachineTest() : folder_(temporary_root()) {
    host("etc/resolv.conf", "nameserver 192.0.2.1\n");
    host("etc/hosts", "127.0.0.1 localhost\n");
    host("etc/os-release", "ID=debian\nVERSION_CODENAME=bookworm\n");
    host("etc/apt/sources.list.d/debian.sources",
         "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\n"
         "Components: main\nSigned-By: /usr/share/keyrings/debian.gpg\n");
    host("usr/share/keyrings/debian.gpg", "keys");
    image("etc/os-release", "ID=debian\nVERSION_CODENAME=\"trixie\"\n");
    machine_.root = folder_.path() / "host";
    machine_.folder = folder_.path() / "machine";
  }
  void put(const fs::path& path, std::string_view text) {
    make_folders(path.parent_path());
    write_file(path, text, false);
  }
  void host(const std::string& path, std::string_view text) {
    put(folder_.path() / "host" / path, text);
  }
  void image(const std::string& path, std::string_view text) {
    put(folder_.path() / "image" / path, text);
  }
  Strings bring() { return bring_machine(ImageRoot{folder_.path() / "image"}, machine_); }
  std::string in_image(const std::string& path) {
    return read_file_if_exists(folder_.path() / "image" / path).value_or("(absent)");
  }
  TemporaryFolder folder_;
  Machine machine_;
};

TEST_F(MachineTest, NetworkFiles) {
  EXPECT_TRUE(bring().empty());
  EXPECT_EQ(in_image("etc/resolv.conf"), "nameserver 192.0.2.1\n");
  EXPECT_EQ(in_image("etc/hosts"), "127.0.0.1 localhost\n");
  EXPECT_EQ(in_image("etc/apt/apt.conf.d/99mlenv"), "(absent)");  // an image without apt
}

TEST_F(MachineTest, NothingOfAnEarlierStartGoesOn) {
  image("usr/bin/apt-get", "");
  machine_.environment = {{"HOME", "/home/jo"}};
  host("etc/apt/auth.conf.d/team.conf", "machine a login b password c\n");
  host("etc/pip.conf", "[global]\nindex-url = http://one.example\n");
  host("home/jo/.config/uv/uv.toml", "offline = true\n");
  Strings written;
  machine_.written = &written;
  bring();
  EXPECT_EQ(in_image("etc/apt/auth.conf.d/team.conf"), "machine a login b password c\n");
  EXPECT_NE(in_image("etc/apt/sources.list.d/mlenv.sources"), "(absent)");
  image("etc/pip.conf", "[global]\n# the person's\n");
  image("etc/apt/auth.conf.d/own.conf", "the person's");
  take_back(ImageRoot{folder_.path() / "image"}, written);
  for (const char* const gone :
       {"etc/apt/auth.conf.d/team.conf", "etc/apt/sources.list.d/mlenv.sources",
        "etc/apt/apt.conf.d/99mlenv", "root/.config/uv/uv.toml"}) {
    EXPECT_EQ(in_image(gone), "(absent)") << gone;
  }
  EXPECT_EQ(in_image("etc/pip.conf"), "[global]\n# the person's\n");
  EXPECT_EQ(in_image("etc/apt/auth.conf.d/own.conf"), "the person's");
}

TEST_F(MachineTest, PassesProxiesAndIndexesAndNothingElse) {
  machine_.environment = {{"https_proxy", "http://p:1"},
                          {"UV_INDEX_TEAM_PASSWORD", "s"},
                          {"PIP_INDEX_URL", "http://i/simple"},
                          {"AWS_SECRET_ACCESS_KEY", "no"},
                          {"HOME", "/home/jo"}};
  EXPECT_EQ(bring(), (Strings{"PIP_INDEX_URL=http://i/simple", "UV_INDEX_TEAM_PASSWORD=s",
                              "https_proxy=http://p:1"}));
}

TEST_F(MachineTest, CertificatesAreCopiedOnce) {
  host("etc/ssl/ours.pem", "certificate");
  host("etc/pip.conf", "[global]\ncert = /etc/ssl/ours.pem\nindex-url = http://i/simple\n");
  machine_.environment = {{"SSL_CERT_FILE", "/etc/ssl/ours.pem"},
                          {"PIP_CERT", "/etc/ssl/ours.pem"},
                          {"CURL_CA_BUNDLE", "/etc/ssl/absent.pem"}};
  EXPECT_EQ(bring(), (Strings{"PIP_CERT=/run/mlenv/certificates-1.pem",
                              "SSL_CERT_FILE=/run/mlenv/certificates-1.pem"}));
  EXPECT_EQ(read_file(machine_.folder / "certificates-1.pem"), "certificate");
  EXPECT_EQ(in_image("etc/pip.conf"),
            "# This machine's settings, put here by `mlenv run`\n"
            "[global]\ncert = /run/mlenv/certificates-1.pem\nindex-url = http://i/simple\n");
}

TEST_F(MachineTest, AptSourcesAreRenamedToTheImagesRelease) {
  image("usr/bin/apt-get", "");
  host("etc/apt/apt.conf.d/50proxy",
       "Acquire::http::Proxy \"http://p:1\";\nAcquire::https::CAInfo \"/x\";\nDPkg::Foo \"1\";\n");
  machine_.single_id = true;
  bring();
  const std::string sources = in_image("etc/apt/sources.list.d/mlenv.sources");
  EXPECT_NE(sources.find("URIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n"
                         "Signed-By: /run/mlenv/debian.gpg\n"),
            std::string::npos)
      << sources;
  EXPECT_EQ(sources.find("bookworm"), std::string::npos);
  EXPECT_EQ(read_file(machine_.folder / "debian.gpg"), "keys");
  EXPECT_EQ(in_image("etc/apt/apt.conf.d/99mlenv"),
            "// Put here by `mlenv run`\nAcquire::http::Proxy \"http://p:1\";\n"
            "APT::Sandbox::User \"root\";\n");
}

TEST_F(MachineTest, WhatAnEarlierRunPutThereIsReplaced) {
  image("usr/bin/apt-get", "");
  host("etc/pip.conf", "[global]\nindex-url = http://one\n");
  bring();
  host("etc/pip.conf", "[global]\nindex-url = http://two\n");
  remove_tree(machine_.folder);
  bring();
  EXPECT_NE(in_image("etc/pip.conf").find("http://two"), std::string::npos);
  EXPECT_EQ(in_image("etc/pip.conf").find("http://one"), std::string::npos);
  EXPECT_EQ(read_file(machine_.folder / "debian.gpg"), "keys");  // for apt's sources
}

TEST_F(MachineTest, WhatTheImageSaysStays) {
  image("usr/bin/apt-get", "");
  image("etc/apt/sources.list", "# none\ndeb http://own.example/debian trixie main\n");
  image("etc/pip.conf", "[global]\n");
  host("etc/pip.conf", "[global]\nindex-url = http://i\n");
  bring();
  EXPECT_EQ(in_image("etc/apt/sources.list.d/mlenv.sources"), "(absent)");
  EXPECT_EQ(in_image("etc/pip.conf"), "[global]\n");
}

}  // namespace
}  // namespace mlenv
