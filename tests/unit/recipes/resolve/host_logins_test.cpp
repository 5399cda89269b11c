#include "recipes/resolve/host_logins.hpp"

#include <gtest/gtest.h>

#include "base/netrc.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

std::string value(const Strings& environment, const std::string& name) {
  for (const std::string& text : environment) {
    if (text.starts_with(name + "=")) return text.substr(name.size() + 1);
  }
  return {};
}

class HostLoginsTest : public testing::Test {
 protected:
  HostLoginsTest() {
    make_folders(home());
    write_file(home() / ".netrc",
               "machine a.example login a password AAA\nmachine b.example login b password BBB\n"
               "default login d password DDD\n");
    write_file(home() / ".gitconfig", "[user]\n");
  }
  fs::path home() const { return folder.path() / "home"; }
  TemporaryFolder folder{temporary_root()};
};

TEST(PlainHttpHosts, AreFoundInAnyWord) {
  EXPECT_EQ(plain_http_hosts({"--index", "http://me:pw@A.example:80/simple", "https://b.example",
                              "UV_INDEX=x=http://c.example y=HTTP://[::1]:5/z"}),
            (Strings{"a.example", "c.example", "[::1]"}));
}

TEST_F(HostLoginsTest, UvGetsNoDefaultAndNothingForPlainHttp) {
  Strings environment{"HOME=" + home().string(), "UV_INDEX_URL=http://b.example/simple"};
  narrow_netrc(environment, {"--index", "https://a.example/simple"}, folder.path());
  const std::string text = read_file(value(environment, "NETRC"));
  EXPECT_NE(text.find("AAA"), std::string::npos) << text;
  EXPECT_EQ(text.find("BBB"), std::string::npos) << text;
  EXPECT_EQ(text.find("DDD"), std::string::npos) << text;
  struct stat status {};
  ASSERT_EQ(::stat(value(environment, "NETRC").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(HostLoginsTest, WhoeverHasNoNetrcIsLeftAlone) {
  Strings environment{"HOME=/absent"};
  narrow_netrc(environment, {"http://a.example"}, folder.path());
  narrow_git_home(environment, {"fetch", "https://a.example/x"});
  EXPECT_EQ(environment, Strings{"HOME=/absent"});
}

TEST_F(HostLoginsTest, GitHasAHomeWithoutThem) {
  const Strings own{"HOME=" + home().string()};
  for (const bool plain : {true, false}) {
    Strings environment = own;
    narrow_git_home(environment, {"fetch", plain ? "http://a.example/x" : "https://a.example/x"});
    const fs::path other = value(environment, "HOME");
    EXPECT_NE(other, home());
    EXPECT_EQ(read_file(other / ".gitconfig"), "[user]\n");
    const std::string text = read_file(other / ".netrc");
    EXPECT_FALSE(has_default(text));
    EXPECT_EQ(text.empty(), plain) << text;
  }
  for (const Strings& local : {Strings{"rev-parse", "x"}, Strings{"fetch", "ssh://a.example/x"}}) {
    Strings environment = own;
    narrow_git_home(environment, local);
    EXPECT_EQ(environment, own);
  }
}

TEST(GitLoginOptions, KeepItOnTheScheme) {
  EXPECT_EQ(git_login_options({"fetch", "--", "http://a.example/x"}),
            (Strings{"-c", "credential.helper="}));
  EXPECT_EQ(git_login_options({"fetch", "--", "https://a.example/x"}),
            (Strings{"-c", "protocol.http.allow=user"}));
  EXPECT_EQ(git_login_options({"fetch", "--", "ssh://a.example/x"}), Strings{});
}

}  // namespace
}  // namespace mlenv
