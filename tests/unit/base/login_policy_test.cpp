#include "base/login_policy.hpp"

#include <gtest/gtest.h>

#include "base/netrc.hpp"

namespace mlenv {
namespace {

http::Url url(const std::string& text) { return http::parse_url(text); }

/// Of a login for `owner`, in a request that began at `asked` and is at `to`.
std::string refusal(const std::string& owner, const std::string& asked, const std::string& to,
                    bool challenged = true, bool plain = false) {
  return login_refusal(login_owner(url(owner)), {url(to), url(asked), challenged, plain});
}

TEST(LoginPolicy, AChallengedOwnerOverTlsGetsIt) {
  EXPECT_EQ(refusal("https://a.example/x", "https://A.example/y", "https://a.example:443/z"), "");
}

TEST(LoginPolicy, NothingIsSentUnasked) {
  EXPECT_EQ(refusal("https://a.example", "https://a.example", "https://a.example", false),
            "the server has not asked for a login");
}

TEST(LoginPolicy, AnotherHostPortOrSchemeIsAnotherOne) {
  for (const std::string to : {"https://b.example/", "https://a.example:8443/", "http://a.example/",
                               "https://a.example.evil/"}) {
    EXPECT_NE(refusal("https://a.example", to, to, true, true), "") << to;
    // Nor by a redirect, whoever the login is for.
    EXPECT_NE(refusal(to, "https://a.example", to, true, true), "") << to;
  }
}

TEST(LoginPolicy, PlainHttpOnlyOnLoopbackAndOnlyWhenAskedFor) {
  for (const std::string there : {"http://127.0.0.1:5000/", "http://localhost:5000/",
                                  "http://[::1]:5000/", "http://127.9.9.9/"}) {
    EXPECT_NE(refusal(there, there, there), "") << there;
    EXPECT_EQ(refusal(there, there, there, true, true), "") << there;
  }
  for (const std::string there : {"http://10.0.0.1/", "http://registry.example:5000/",
                                  "http://127.0.0.1.example/", "http://localhost.example/"}) {
    EXPECT_NE(refusal(there, there, there, true, true), "") << there;
  }
}

TEST(LoginPolicy, TokenServers) {
  const auto said = [](const std::string& registry, const std::string& realm, bool plain) {
    return token_login_refusal(url(registry), url(realm), plain);
  };
  EXPECT_EQ(said("https://r.example", "https://auth.example/token", false), "");
  EXPECT_NE(said("https://r.example", "http://auth.example/token", true), "");
  EXPECT_NE(said("https://r.example", "http://127.0.0.1/token", true), "");
  EXPECT_NE(said("http://r.example", "https://auth.example/token", true), "");
  EXPECT_NE(said("http://r.example", "http://r.example/token", true), "");
  EXPECT_EQ(said("http://localhost:5000", "http://localhost:5000/token", true), "");
  EXPECT_NE(said("http://localhost:5000", "http://localhost:5000/token", false), "");
  EXPECT_NE(said("http://localhost:5000", "http://localhost:5001/token", true), "");
}

constexpr std::string_view kNetrc =
    "# machine no.example login no password no\n"
    "machine a.example login ann password \"p \\\"q\\\" #x\"\n"
    "macdef init\nmachine evil.example login x password y\n\n"
    "machine a.example:8443\n  login port\n  account z\n  password pw\n"
    "default login anyone password SECRET\n"
    "machine b.example password only\n";

TEST(Netrc, MachinesByHostAndPort) {
  const auto found = [](const std::string& where) {
    const auto login = find_netrc_login(kNetrc, url(where));
    return login ? login->user + ":" + login->password + "@" + login->owner.port : "none";
  };
  EXPECT_EQ(found("https://A.example/x"), "ann:p \"q\" #x@");
  EXPECT_EQ(found("https://a.example:9000/x"), "ann:p \"q\" #x@");
  EXPECT_EQ(found("https://a.example:8443/x"), "port:pw@8443");
  EXPECT_EQ(found("https://b.example"), ":only@");
  for (const char* none : {"https://c.example", "http://a.example", "https://no.example",
                           "https://evil.example", "https://sub.a.example"}) {
    EXPECT_EQ(found(none), "none") << none;
  }
}

TEST(Netrc, NarrowedForOthers) {
  EXPECT_TRUE(has_default(kNetrc));
  const std::string text = narrowed_netrc(kNetrc, {"B.example"});
  EXPECT_FALSE(has_default(text));
  EXPECT_EQ(text.find("SECRET"), std::string::npos) << text;
  EXPECT_EQ(text.find("only"), std::string::npos) << text;
  EXPECT_EQ(find_netrc_login(text, url("https://a.example"))->password, "p \"q\" #x");
  EXPECT_EQ(narrowed_netrc("", {}), "");
}

}  // namespace
}  // namespace mlenv
