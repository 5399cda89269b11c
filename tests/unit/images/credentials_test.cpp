#include "images/credentials.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "images/registry_auth.hpp"
#include "tests/support/credential_helper.hpp"

namespace mlenv {
namespace {

TEST(Base64, VectorsOfRfc4648) {
  const std::vector<std::pair<std::string, std::string>> vectors = {{"", ""},
                                                                    {"f", "Zg=="},
                                                                    {"fo", "Zm8="},
                                                                    {"foo", "Zm9v"},
                                                                    {"foob", "Zm9vYg=="},
                                                                    {"fooba", "Zm9vYmE="},
                                                                    {"foobar", "Zm9vYmFy"},
                                                                    {"\xff\xfe\xfd", "//79"}};
  for (const auto& [plain, encoded] : vectors) {
    EXPECT_EQ(base64_encode(plain), encoded);
    EXPECT_EQ(base64_decode(encoded), plain);
  }
  EXPECT_EQ(base64_decode("Zg"), "f");
  EXPECT_EQ(base64_decode("Z*=="), std::nullopt);
}

class CredentialsTest : public testing::Test {
 protected:
  std::optional<Credentials> find(const std::string& json, std::string_view host,
                                  std::string_view repository = "team/x") {
    const fs::path path = folder.path() / "config.json";
    write_file(path, json, false);
    return find_credentials(path, host, repository, keeper);
  }
  std::string error_of(const std::string& json, std::string_view host) {
    try {
      find(json, host);
    } catch (const Error& error) {
      return error.code() + ": " + error.what() + " / " + error.hint();
    }
    return "no error";
  }
  TemporaryFolder folder{temporary_root()};
  std::string keeper = "the file";
};

const Credentials kAnn{"ann", "s3:cret", {}};  // base64: YW5uOnMzOmNyZXQ=

TEST_F(CredentialsTest, KeysAsPeopleAndToolsWriteThem) {
  for (const char* key : {"host.org:5000", "https://host.org:5000", "http://host.org:5000/",
                          "https://host.org:5000/v1/", "https://host.org:5000/v2/",
                          "host.org:5000/team", "host.org:5000/team/x"}) {
    const std::string json =
        fmt::format(R"({{"auths": {{"{}": {{"auth": "YW5uOnMzOmNyZXQ="}}}}}})", key);
    EXPECT_EQ(find(json, "host.org:5000"), kAnn) << key;
    EXPECT_EQ(find(json, "host.org"), std::nullopt) << key;
    EXPECT_EQ(find(json, "host.org:50000"), std::nullopt) << key;
  }
}

TEST_F(CredentialsTest, LongestKeyWins) {
  const std::string json = R"({"auths": {
      "host.org": {"username": "wide", "password": "p"},
      "host.org/team": {"username": "team", "password": "p"},
      "host.org/te": {"username": "wrong", "password": "p"}}})";
  EXPECT_EQ(find(json, "host.org", "team/x")->user, "team");
  EXPECT_EQ(find(json, "host.org", "teams/x")->user, "wide");
}

TEST_F(CredentialsTest, AbsentIsNotAnError) {
  EXPECT_EQ(find_credentials(folder.path() / "none.json", "h", "r", keeper), std::nullopt);
  EXPECT_EQ(find("{}", "host.org"), std::nullopt);
  EXPECT_EQ(find(R"({"auths": {"host.org": {}}})", "host.org"), std::nullopt);
}

TEST_F(CredentialsTest, HelperOfTheHostThenTheStoreThenTheFile) {
  test::HelperPrograms programs;
  programs.add_login("own", "host.org", "of-host", "p");
  programs.add_login("all", "other.org", "of-store", "p");
  const std::string json = R"({"credHelpers": {"host.org": "own", "file.org": ""},
      "credsStore": "all",
      "auths": {"host.org": {"username": "in-file", "password": "p"},
                "file.org": {"username": "in-file", "password": "p"},
                "third.org": {"username": "in-file", "password": "p"}}})";
  EXPECT_EQ(find(json, "file.org")->user, "in-file");
  EXPECT_EQ(keeper, "the file");
  EXPECT_EQ(find(json, "host.org")->user, "of-host");
  EXPECT_EQ(keeper, "docker-credential-own");
  EXPECT_EQ(find(json, "other.org")->user, "of-store");
  EXPECT_EQ(find(json, "third.org"), std::nullopt);  // the store has the last word
  EXPECT_EQ(find(json, "host.org:5000"), std::nullopt);
  EXPECT_EQ(programs.log(), "get host.org\nget other.org\nget third.org\nget host.org:5000\n");
}

TEST_F(CredentialsTest, AbsentHelpersAreNamed) {
  const std::string by_host = error_of(R"({"credHelpers": {"host.org": "none-1"}})", "host.org");
  EXPECT_NE(by_host.find("docker-credential-none-1"), std::string::npos) << by_host;
  EXPECT_EQ(keeper, "docker-credential-none-1");
  EXPECT_NE(by_host.find("PATH"), std::string::npos) << by_host;
  const std::string store = error_of(R"({"credsStore": "none-2"})", "host.org");
  EXPECT_NE(store.find("docker-credential-none-2"), std::string::npos) << store;
}

TEST_F(CredentialsTest, IdentityToken) {
  // `ann:`, as registries of Azure have it.
  const std::string json =
      R"({"auths": {"host.org": {"auth": "YW5uOg==", "identitytoken": "refresh-me"}}})";
  EXPECT_EQ(find(json, "host.org"), (Credentials{{}, {}, "refresh-me"}));
}

TEST_F(CredentialsTest, MalformedFilesAreErrorsWithoutTheSecret) {
  EXPECT_EQ(error_of("{", "host.org").substr(0, 8), "bad-json");
  const std::string text =
      error_of(R"({"auths": {"host.org": {"auth": "bm9jb2xvbg=="}}})", "host.org");
  EXPECT_EQ(text.substr(0, 11), "credentials") << text;
  EXPECT_EQ(text.find("bm9jb2xvbg"), std::string::npos) << text;
  const std::string comma =
      error_of("{\"auths\": {\"host.org\":\n {\"auth\" \"c2VjcmV0\"}}}", "host.org");
  EXPECT_EQ(comma.substr(0, 8), "bad-json") << comma;
  EXPECT_NE(comma.find("line 2"), std::string::npos) << comma;
  EXPECT_EQ(comma.find("c2VjcmV0"), std::string::npos) << comma;
}

TEST_F(CredentialsTest, ConfigPath) {
  EXPECT_EQ(docker_config_path(folder.path()), folder.path() / "config.json");
  EXPECT_EQ(docker_config_path(folder.path() / "x.json"), folder.path() / "x.json");
}

TEST(Challenges, AsRegistriesSendThem) {
  const auto bearer = parse_challenges(
      R"(Bearer realm="https://auth.example.org/token",service="registry",scope="repository:a/b:pull,push")");
  ASSERT_EQ(bearer.size(), 1U);
  EXPECT_EQ(bearer[0].scheme, "bearer");
  EXPECT_EQ(bearer[0].parameters.at("realm"), "https://auth.example.org/token");
  EXPECT_EQ(bearer[0].parameters.at("scope"), "repository:a/b:pull,push");
  const auto both = parse_challenges(R"(BASIC realm="a \"b\"", Bearer realm=x , error="invalid")");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].scheme, "basic");
  EXPECT_EQ(both[0].parameters.at("realm"), "a \"b\"");
  EXPECT_EQ(both[1].parameters.at("realm"), "x");
  EXPECT_EQ(both[1].parameters.at("error"), "invalid");
  EXPECT_TRUE(parse_challenges("").empty());
  EXPECT_EQ(parse_challenges("Basic realm=\"open").size(), 1U);
}

}  // namespace
}  // namespace mlenv
