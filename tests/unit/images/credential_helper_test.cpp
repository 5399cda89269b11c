#include "images/credential_helper.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/credential_helper.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::milliseconds kSoon{300};

class CredentialHelperTest : public testing::Test {
 protected:
  Error error_of(const std::string& name, std::chrono::milliseconds deadline = kHelperDeadline) {
    try {
      const auto found = ask_credential_helper(name, "host.org:5000", deadline);
      ADD_FAILURE() << "no error but " << (found ? "a login" : "none");
    } catch (const Error& error) {
      return error;
    }
    return failure("none", "none");
  }
  /// All that a person gets to see of `error`.
  static std::string told(const Error& error) { return error.what() + (" / " + error.hint()); }

  test::HelperPrograms programs;
};

TEST_F(CredentialHelperTest, GivesALogin) {
  programs.add_login("x", "host.org:5000", "ann", "s3:cret");
  EXPECT_EQ(ask_credential_helper("x", "host.org:5000"), (Credentials{"ann", "s3:cret", {}}));
  EXPECT_EQ(programs.log(), "get host.org:5000\n");
}

TEST_F(CredentialHelperTest, TokenUserMeansAnIdentityToken) {
  programs.add_login("x", "host.org", "<token>", "refresh-me");
  EXPECT_EQ(ask_credential_helper("x", "host.org"), (Credentials{{}, {}, "refresh-me"}));
}

TEST_F(CredentialHelperTest, NotFoundIsNoLogin) {
  programs.add_login("x", "elsewhere.org", "ann", "s3cret");
  EXPECT_EQ(ask_credential_helper("x", "host.org"), std::nullopt);
  programs.add("loud",
               "echo trying >&2; echo 'credentials not found in native keychain' >&2; exit 1");
  EXPECT_EQ(ask_credential_helper("loud", "host.org"), std::nullopt);
  programs.add("empty", R"(echo '{"ServerURL":"","Username":"","Secret":""}')");
  EXPECT_EQ(ask_credential_helper("empty", "host.org"), std::nullopt);
}

TEST_F(CredentialHelperTest, MissingProgram) {
  for (const char* name : {"nowhere", "../x", "/bin/true"}) {
    const Error error = error_of(name);
    EXPECT_EQ(error.code(), "credentials");
    EXPECT_NE(told(error).find(std::string("docker-credential-") + name), std::string::npos);
    EXPECT_NE(told(error).find("docker login host.org:5000"), std::string::npos) << told(error);
  }
}

TEST_F(CredentialHelperTest, FailureInItsOwnWords) {
  programs.add("x", "echo; echo 'the vault is sealed'; echo more; exit 3");
  EXPECT_EQ(std::string(error_of("x").what()),
            "`docker-credential-x` gives no login for `host.org:5000`: the vault is sealed");
  programs.add("y", "exit 3");
  EXPECT_NE(told(error_of("y")).find("exit status is 3"), std::string::npos);
  programs.add("z", "kill -9 $$");
  EXPECT_NE(told(error_of("z")).find("signal 9"), std::string::npos);
}

TEST_F(CredentialHelperTest, RubbishIsAnErrorThatShowsNoSecret) {
  for (const char* rubbish :
       {"", "s3cret", R"({"Username":"ann","Secret":"s3cret")", R"(["s3cret"])",
        R"({"Username":"ann","Secret":["s3cret"]})", R"({"Secret":"s3cret"})",
        R"({"Username":"","Secret":"s3cret"})", R"({"Username":"ann","Secret":""})"}) {
    programs.add("x", std::string("cat <<'END'\n") + rubbish + "\nEND\n");
    const Error error = error_of("x");
    EXPECT_EQ(error.code(), "credentials") << rubbish;
    EXPECT_EQ(told(error).find("s3cret"), std::string::npos) << told(error);
  }
}

TEST_F(CredentialHelperTest, FailureWithALoginInItsOutputIsNotQuoted) {
  programs.add("x", R"(echo '{"Username":"ann","Secret":"s3cret"}'
echo '+ echo {"Username":"ann","Secret":"s3cret"}' >&2
exit 1)");
  const std::string text = told(error_of("x"));
  EXPECT_EQ(text.find("s3cret"), std::string::npos) << text;
  EXPECT_NE(text.find("exit status is 1"), std::string::npos) << text;
}

TEST_F(CredentialHelperTest, IsNotWaitedForForEver) {
  programs.add("x", "exec tail -f /dev/null");
  const Error error = error_of("x", kSoon);
  EXPECT_EQ(error.code(), "timeout");
  EXPECT_NE(told(error).find("docker-credential-x"), std::string::npos) << told(error);
  EXPECT_NE(error.hint().find("unlocked"), std::string::npos) << error.hint();
}

}  // namespace
}  // namespace mlenv
