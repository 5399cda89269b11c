#include "images/registry.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/error.hpp"
#include "images/credentials.hpp"
#include "images/registry_auth.hpp"
#include "tests/support/credential_helper.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/fault_server.hpp"

namespace mlenv {
namespace {

using test::FaultServer;
using test::Reply;
using test::Seen;

std::string blob_noise(std::size_t size_bytes) {
  std::string text(size_bytes, '\0');
  std::uint32_t state = 99;
  for (char& c : text) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  return text;
}

Reply status(int code, std::vector<std::pair<std::string, std::string>> headers = {},
             std::string body = {}) {
  Reply reply;
  reply.status = code;
  reply.headers = std::move(headers);
  reply.body = std::move(body);
  return reply;
}

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() : http(http_options()) {
    options.plain_http = true;
    options.docker_config = folder.path() / "config.json";
  }
  static HttpOptions http_options() {
    HttpOptions options;
    options.pause = [](std::chrono::milliseconds) {};
    return options;
  }
  Registry registry() { return {http, Reference::parse(server.host() + "/team/x"), options}; }
  static Descriptor describe(const std::string& bytes) {
    return {std::string(kLayerGzipType), Digest::of(bytes), bytes.size()};
  }
  void upload(const std::string& bytes) {
    Registry to = registry();
    to.upload_blob(
        describe(bytes),
        [&](std::uint64_t offset) {
          return std::make_unique<MemorySource>(as_bytes(bytes).subspan(offset));
        },
        [this](std::uint64_t amount) { advanced += amount; });
  }
  void log_in(const std::string& user, const std::string& password) {
    write_file(options.docker_config,
               fmt::format(R"({{"auths": {{"{}": {{"auth": "{}"}}}}}})", server.host(),
                           Credentials{user, password, {}}.basic()),
               false);
  }

  FaultServer server;
  TemporaryFolder folder{temporary_root()};
  RegistryOptions options;
  Http http;
  std::uint64_t advanced = 0;
};

constexpr const char* kUploads = "/v2/team/x/blobs/uploads/";

TEST_F(RegistryTest, UploadsSmallBlobsWithOnePut) {
  server.script(kUploads, {status(202, {{"Location", "/session/1?state=a"}})});
  server.script("/session/1", {status(201)});
  const std::string bytes = blob_noise(1000);
  upload(bytes);
  const std::vector<Seen> seen = server.seen();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1].method, "PUT");
  EXPECT_EQ(seen[1].target,
            "/session/1?state=a&digest=" + url_query_encode(Digest::of(bytes).str()));
  EXPECT_EQ(seen[1].body, bytes);
  EXPECT_EQ(advanced, bytes.size());
}

TEST_F(RegistryTest, UploadsLargeBlobsWithOnePatch) {
  server.script(kUploads, {status(202, {{"Location", server.url("/session/1")}})});
  server.script("/session/1", {status(202, {{"Location", "/session/2?x=1"}})});
  server.script("/session/2", {status(201)});
  const std::string bytes = blob_noise(3'000'000);
  upload(bytes);
  const std::vector<Seen> seen = server.seen();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[1].method, "PATCH");
  EXPECT_EQ(seen[1].body, bytes);
  EXPECT_EQ(seen[2].method, "PUT");
  EXPECT_EQ(seen[2].header("content-length"), "0");
}

TEST_F(RegistryTest, ContinuesWhereTheRegistryIs) {
  const std::string bytes = blob_noise(2'000'000);
  server.script(kUploads, {status(202, {{"Location", "/session/1"}})});
  Reply broken;
  broken.reset_upload_at = 700'000;
  // The registry kept less than it had read.
  server.script("/session/1",
                {broken, status(204, {{"Location", "/session/2"}, {"Range", "0-649999"}})});
  server.script("/session/2", {status(202, {{"Location", "/session/3"}})});
  server.script("/session/3", {status(201)});
  upload(bytes);
  const std::vector<Seen> seen = server.seen("/session/2");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].method, "PATCH");
  EXPECT_EQ(seen[0].header("content-range"), "650000-1999999");
  EXPECT_EQ(seen[0].body, bytes.substr(650'000));
  EXPECT_EQ(advanced, bytes.size());
}

TEST_F(RegistryTest, LostSessionMeansANewOne) {
  const std::string bytes = blob_noise(500'000);
  server.script(kUploads, {status(202, {{"Location", "/session/1"}}),
                           status(202, {{"Location", "/session/2"}})});
  Reply broken;
  broken.reset_upload_at = 100'000;
  server.script("/session/1", {broken, status(404)});
  server.script("/session/2", {status(202), status(201)});
  upload(bytes);
  EXPECT_EQ(server.seen("/session/2")[0].body, bytes);
  EXPECT_EQ(advanced, bytes.size());
}

TEST_F(RegistryTest, LostAnswerOfTheLastStepIsFine) {
  const std::string bytes = blob_noise(1000);
  server.script(kUploads, {status(202, {{"Location", "/session/1"}})});
  Reply broken;
  broken.reset_upload_at = 1000;
  server.script("/session/1", {broken, status(404)});
  server.script("/v2/team/x/blobs/" + Digest::of(bytes).str(), {status(200)});
  upload(bytes);
}

TEST_F(RegistryTest, EverLostSessionsEnd) {
  server.script(kUploads, {status(202, {{"Location", "/session/1"}})});
  server.script("/session/1", {status(404)});
  const Error error = error_of([&] { upload(blob_noise(1000)); });
  EXPECT_EQ(error.code(), "registry");
  EXPECT_EQ(server.seen(kUploads).size(), 5U);
}

TEST_F(RegistryTest, WrongDigestIsSaid) {
  server.script(kUploads, {status(202, {{"Location", "/session/1"}})});
  server.script("/session/1",
                {status(400, {}, R"({"errors":[{"code":"DIGEST_INVALID","message":"bad"}]})")});
  EXPECT_EQ(error_of([&] { upload(blob_noise(1000)); }).code(), "digest-mismatch");
}

TEST_F(RegistryTest, RegistrysOwnWords) {
  server.script("/v2/team/x/manifests/v1",
                {status(400, {}, R"({"errors":[{"code":"MANIFEST_INVALID",
                  "message":"manifest invalid","detail":{"name":"x"}}]})")});
  Registry to = registry();
  const Error error = error_of([&] { to.put_manifest("v1", "{}", kManifestType); });
  EXPECT_EQ(error.code(), "registry");
  EXPECT_NE(std::string(error.what()).find(R"(MANIFEST_INVALID: manifest invalid ({"name":"x"}))"),
            std::string::npos)
      << error.what();
}

TEST_F(RegistryTest, BasicLoginIsSentOnlyWhenAsked) {
  log_in("ann", "secret");
  const std::string path = "/v2/team/x/manifests/v1";
  server.script(path, {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}}), status(404)});
  Registry from = registry();
  EXPECT_FALSE(from.get_manifest("v1"));
  const std::vector<Seen> seen = server.seen(path);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].header("authorization"), "");
  EXPECT_EQ(seen[1].header("authorization"), "Basic YW5uOnNlY3JldA==");
  EXPECT_FALSE(from.get_manifest("v1"));  // known by now
  EXPECT_EQ(server.seen(path).size(), 3U);
}

TEST_F(RegistryTest, DeniedSaysWhatToDo) {
  const std::string path = "/v2/team/x/manifests/v1";
  server.script(path, {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}})});
  Registry stranger = registry();
  const Error unknown = error_of([&] { stranger.get_manifest("v1"); });
  EXPECT_EQ(unknown.code(), "denied");
  EXPECT_NE(unknown.hint().find("docker login " + server.host()), std::string::npos);
  EXPECT_NE(unknown.hint().find(options.docker_config.string()), std::string::npos);
  log_in("ann", "wrong");
  Registry known = registry();
  const Error refused = error_of([&] { known.get_manifest("v1"); });
  EXPECT_EQ(refused.code(), "denied");
  EXPECT_NE(refused.hint().find("`ann`"), std::string::npos) << refused.hint();
  EXPECT_EQ(refused.hint().find("wrong"), std::string::npos);
}

TEST_F(RegistryTest, OverPlainHttpALoginGoesToLoopbackAloneAndOnlyWhenAskedFor) {
  const std::string port = server.host().substr(server.host().find(':'));
  server.script("/v2/team/x/manifests/v1",
                {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}})});
  const auto refusal = [&](const std::string& host) {
    write_file(options.docker_config,
               fmt::format(R"({{"auths": {{"{}": {{"auth": "{}"}}}}}})", host,
                           Credentials{"ann", "secret", {}}.basic()),
               false);
    Registry from{http, Reference::parse(host + "/team/x"), options};
    return error_of([&] { from.get_manifest("v1"); });
  };
  options.plain_http = false;
  const Error unasked = refusal(server.host());
  EXPECT_EQ(unasked.code(), "denied");
  EXPECT_NE(std::string(unasked.what()).find("plain HTTP"), std::string::npos) << unasked.what();
  EXPECT_NE(unasked.hint().find("--plain-http"), std::string::npos) << unasked.hint();
  options.plain_http = true;
  EXPECT_EQ(refusal("0.0.0.0" + port).code(), "denied");  // reaches it, and is no loopback name
  for (const Seen& seen : server.seen()) EXPECT_EQ(seen.header("authorization"), "");
}

TEST_F(RegistryTest, TheMachinesOwnLoginsAreNotForRegistries) {
  write_file(folder.path() / "netrc", "machine 127.0.0.1 login a password b\n", false);
  HttpOptions with = http_options();
  with.netrc = folder.path() / "netrc";
  Http own{with};
  server.script("/v2/team/x/manifests/v1",
                {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}})});
  Registry from{own, Reference::parse(server.host() + "/team/x"), options};
  EXPECT_EQ(error_of([&] { from.get_manifest("v1"); }).code(), "denied");
  for (const Seen& seen : server.seen()) EXPECT_EQ(seen.header("authorization"), "");
}

TEST_F(RegistryTest, UploadsMayGoElsewhereAndTheLoginStays) {
  log_in("ann", "secret");
  FaultServer store;
  store.script("/bucket/1", {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}})});
  server.script(kUploads, {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}}),
                           status(202, {{"Location", store.url("/bucket/1")}})});
  EXPECT_EQ(error_of([&] { upload("small"); }).code(), "denied");
  EXPECT_NE(server.seen(kUploads).at(1).header("authorization"), "");
  for (const Seen& seen : store.seen()) EXPECT_EQ(seen.header("authorization"), "");
}

TEST_F(RegistryTest, BlobsMayLieElsewhereAndTheLoginStays) {
  log_in("ann", "secret");
  FaultServer store;
  const std::string bytes = blob_noise(10'000);
  const std::string path = "/v2/team/x/blobs/" + Digest::of(bytes).str();
  store.script("/bucket/1", {status(200, {}, bytes)});
  server.script(path, {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}}),
                       status(307, {{"Location", store.url("/bucket/1?signature=s")}})});
  Registry from = registry();
  const Fd file = open_file(folder.path() / "blob", O_RDWR | O_CREAT);
  from.download_blob(describe(bytes), file.get(), nullptr);
  EXPECT_EQ(read_file(folder.path() / "blob"), bytes);
  EXPECT_EQ(server.seen(path).at(1).header("authorization"), "Basic YW5uOnNlY3JldA==");
  ASSERT_EQ(store.seen().size(), 1U);
  EXPECT_EQ(store.seen()[0].target, "/bucket/1?signature=s");
  EXPECT_EQ(store.seen()[0].header("authorization"), "");
}

TEST_F(RegistryTest, AnotherHostsChallengeIsNotAnswered) {
  log_in("ann", "secret");
  FaultServer thief;
  const std::string bytes = blob_noise(1000);
  const Digest digest = Digest::of(bytes);
  for (const char* scheme : {"Basic realm=\"r\"", "Bearer realm=\"%\""}) {
    std::string challenge = scheme;
    if (const auto at = challenge.find('%'); at != std::string::npos) {
      challenge.replace(at, 1, thief.url("/token"));
    }
    thief.script("/bucket/1", {status(401, {{"WWW-Authenticate", challenge}})});
    server.script("/v2/team/x/blobs/" + digest.str(),
                  {status(307, {{"Location", thief.url("/bucket/1")}})});
    server.script("/v2/team/x/manifests/v1", {status(307, {{"Location", thief.url("/bucket/1")}})});
    Registry from = registry();
    const Fd file = open_file(folder.path() / "blob", O_RDWR | O_CREAT);
    EXPECT_EQ(error_of([&] { from.download_blob(describe(bytes), file.get(), nullptr); }).code(),
              "http-status");
    EXPECT_EQ(error_of([&] { from.get_manifest("v1"); }).code(), "denied");
  }
  EXPECT_EQ(thief.seen("/bucket/1").size(), 4U);
  EXPECT_TRUE(thief.seen("/token").empty());
  for (const Seen& seen : thief.seen()) EXPECT_EQ(seen.header("authorization"), "");
}

/// A registry that wants tokens: `/token` gives token-1, token-2, …; only the newest is good.
class TokenTest : public RegistryTest {
 protected:
  TokenTest() {
    server.otherwise([this](const Seen& seen) {
      if (seen.target.starts_with("/token")) {
        ++given;
        return status(200, {}, fmt::format(R"({{"token": "token-{}"}})", given));
      }
      if (seen.header("authorization") != fmt::format("Bearer token-{}", good)) {
        return status(
            401, {{"WWW-Authenticate",
                   fmt::format(R"(Bearer realm="{}",service="s v",scope="repository:team/x:pull")",
                               server.url("/token"))}});
      }
      Reply reply = status(200, {}, content);
      reply.ranges = true;
      if (cut) {
        reply.fault = Reply::Fault::close;
        reply.cut_at = 100'000;
        cut = false;
        good = 2;  // the token runs out meanwhile
      }
      return reply;
    });
  }
  std::string content = blob_noise(300'000);
  std::atomic<bool> cut = false;
  std::atomic<int> given = 0;
  std::atomic<int> good = 1;
  std::vector<Seen> asked() const { return server.seen("/token"); }
};

TEST_F(TokenTest, AnonymousToken) {
  Registry from = registry();
  EXPECT_TRUE(from.has_blob(Digest::of(content)));
  ASSERT_EQ(asked().size(), 1U);
  EXPECT_EQ(asked()[0].target, "/token?service=s%20v&scope=repository%3Ateam%2Fx%3Apull");
  EXPECT_EQ(asked()[0].header("authorization"), "");
  EXPECT_TRUE(from.has_blob(Digest::of(content)));
  EXPECT_EQ(asked().size(), 1U);
}

TEST_F(TokenTest, LoginGoesToTheTokenServer) {
  log_in("ann", "secret");
  Registry from = registry();
  EXPECT_TRUE(from.has_blob(Digest::of(content)));
  EXPECT_EQ(asked().at(0).header("authorization"), "Basic YW5uOnNlY3JldA==");
}

TEST_F(TokenTest, ATokenServerElsewhereGetsNoLoginOverPlainHttp) {
  log_in("ann", "secret");
  FaultServer thief;
  thief.script("/token", {status(200, {}, R"({"token": "anonymous"})")});
  const std::string path = "/v2/team/x/manifests/v1";
  server.script(path, {status(401, {{"WWW-Authenticate",
                                     fmt::format(R"(Bearer realm="{}")", thief.url("/token"))}}),
                       status(404)});
  Registry from = registry();
  EXPECT_FALSE(from.get_manifest("v1"));
  ASSERT_EQ(thief.seen().size(), 1U);
  EXPECT_EQ(thief.seen()[0].header("authorization"), "");
  EXPECT_EQ(server.seen(path).at(1).header("authorization"), "Bearer anonymous");
}

TEST_F(TokenTest, WhatWouldBeAnotherHeaderIsNoToken) {
  FaultServer other;
  const std::string path = "/v2/team/x/manifests/v1";
  for (const char* token :
       {R"(a\r\nX-Other: b)", R"(a\nb)", R"(a\u0000b)", R"(a b)", R"(a\u007f)"}) {
    other.script("/token", {status(200, {}, fmt::format(R"({{"token": "{}"}})", token))});
    server.script(path, {status(401, {{"WWW-Authenticate", fmt::format(R"(Bearer realm="{}")",
                                                                       other.url("/token"))}})});
    Registry from = registry();
    const Error error = error_of([&] { from.get_manifest("v1"); });
    EXPECT_EQ(error.code(), "registry") << token;
    EXPECT_NE(std::string(error.what()).find("characters that no token has"), std::string::npos);
  }
  EXPECT_EQ(server.seen(path).size(), 5U);  // nothing was sent with one
}

TEST_F(TokenTest, ATokenServerHasAnAddress) {
  log_in("ann", "secret");
  const std::string path = "/v2/team/x/manifests/v1";
  for (const char* realm : {"/token", "", "file:///etc/passwd", "ftp://127.0.0.1/x"}) {
    server.script(
        path, {status(401, {{"WWW-Authenticate", fmt::format(R"(Bearer realm="{}")", realm)}})});
    Registry from = registry();
    const Error error = error_of([&] { from.get_manifest("v1"); });
    EXPECT_EQ(error.code(), "registry") << realm;
    EXPECT_NE(std::string(error.what()).find("names no token server"), std::string::npos) << realm;
  }
}

TEST_F(TokenTest, LoginOfAHelperGoesToTheTokenServer) {
  test::HelperPrograms programs;
  programs.add_login("x", server.host(), "ann", "secret");
  write_file(options.docker_config, R"({"credsStore": "x"})", false);
  Registry from = registry();
  EXPECT_TRUE(from.has_blob(Digest::of(content)));
  EXPECT_EQ(asked().at(0).header("authorization"), "Basic YW5uOnNlY3JldA==");
  good = 2;
  EXPECT_TRUE(from.has_blob(Digest::of(content)));
  EXPECT_EQ(programs.log(), "get " + server.host() + "\n");  // asked once
}

TEST_F(TokenTest, HelperThatFailsIsAskedOnce) {
  test::HelperPrograms programs;
  programs.add("x", "exit 1");
  write_file(options.docker_config, R"({"credsStore": "x"})", false);
  Registry from = registry();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(error_of([&] { from.has_blob(Digest::of(content)); }).code(), "credentials");
  }
  EXPECT_EQ(programs.log(), "get " + server.host() + "\n");
  EXPECT_TRUE(asked().empty());
}

/// A login that is a refresh token.
class IdentityTokenTest : public TokenTest {
 protected:
  IdentityTokenTest() {
    write_file(
        options.docker_config,
        fmt::format(R"({{"auths": {{"{}": {{"identitytoken": "refresh+me"}}}}}})", server.host()),
        false);
  }
  Error refused_with(Reply reply) {
    server.script("/token", {std::move(reply)});
    Registry from = registry();
    return error_of([&] { from.has_blob(Digest::of(content)); });
  }
};

TEST_F(IdentityTokenTest, IsPostedToTheTokenServer) {
  Registry from = registry();
  EXPECT_TRUE(from.has_blob(Digest::of(content)));
  ASSERT_EQ(asked().size(), 1U);
  const Seen seen = asked()[0];
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/token");
  EXPECT_EQ(seen.header("content-type"), "application/x-www-form-urlencoded");
  EXPECT_EQ(seen.header("authorization"), "");
  EXPECT_EQ(seen.body,
            "service=s%20v&scope=repository%3Ateam%2Fx%3Apull&client_id=mlenv"
            "&grant_type=refresh_token&refresh_token=refresh%2Bme");
  good = 2;  // each new token is asked for the same way
  EXPECT_TRUE(from.has_blob(Digest::of(content)));
  EXPECT_EQ(asked().at(1).body, seen.body);
}

TEST_F(IdentityTokenTest, RefusalsSayWhatToDo) {
  for (const int code : {400, 401, 403}) {
    const Error error = refused_with(status(code, {}, R"({"error":"invalid_grant"})"));
    EXPECT_EQ(error.code(), "denied") << code;
    EXPECT_NE(error.hint().find("docker login " + server.host()), std::string::npos)
        << error.hint();
    EXPECT_EQ((error.what() + error.hint()).find("refresh+me"), std::string::npos);
  }
  const Error unknown = refused_with(status(404));
  EXPECT_EQ(unknown.code(), "registry");
  EXPECT_NE(std::string(unknown.what()).find("takes no identity tokens"), std::string::npos);
}

TEST_F(IdentityTokenTest, DoesNotFollowARedirect) {
  FaultServer other;
  EXPECT_EQ(refused_with(status(307, {{"Location", other.url("/token")}})).code(), "registry");
  EXPECT_TRUE(other.seen().empty());
}

TEST_F(IdentityTokenTest, IsNoPassword) {
  server.script("/v2/team/x/manifests/v1",
                {status(401, {{"WWW-Authenticate", "Basic realm=\"r\""}})});
  Registry from = registry();
  EXPECT_EQ(error_of([&] { from.get_manifest("v1"); }).code(), "denied");
  for (const Seen& seen : server.seen()) EXPECT_EQ(seen.header("authorization"), "");
}

TEST_F(TokenTest, AnswersWithTokensAreNotQuoted) {
  server.script("/token", {status(200, {}, R"({"token" "abc123"})")});
  Registry from = registry();
  const Error error = error_of([&] { from.has_blob(Digest::of(content)); });
  EXPECT_EQ(error.code(), "bad-json");
  EXPECT_EQ(std::string(error.what()).find("abc123"), std::string::npos) << error.what();
}

TEST_F(TokenTest, TokenThatRunsOutDuringADownloadIsRenewed) {
  cut = true;
  Registry from = registry();
  const Fd file = open_file(folder.path() / "blob", O_RDWR | O_CREAT);
  from.download_blob(describe(content), file.get(), nullptr);
  EXPECT_EQ(read_file(folder.path() / "blob"), content);
  EXPECT_EQ(given, 2);
}

TEST_F(TokenTest, TokensThatNeverPleaseEnd) {
  good = -1;
  Registry from = registry();
  const Fd file = open_file(folder.path() / "blob", O_RDWR | O_CREAT);
  EXPECT_EQ(error_of([&] { from.has_blob(Digest::of(content)); }).code(), "denied");
  EXPECT_EQ(error_of([&] { from.download_blob(describe(content), file.get(), nullptr); }).code(),
            "http-status");
  EXPECT_LE(given, 3);
}

/// A registry whose tokens are good for what they were asked for, and for a while: `/token` gives
/// `SERIAL.SCOPE`, and those older than `oldest` have run out.
class ScopeTest : public RegistryTest {
 protected:
  ScopeTest() {
    server.otherwise([this](const Seen& seen) {
      if (seen.target.starts_with("/token")) {
        const std::string scope = seen.target.substr(seen.target.rfind('=') + 1);
        return status(200, {}, fmt::format(R"({{"token": "{}.{}"}})", ++given, scope));
      }
      const bool reads = seen.method == "HEAD" || seen.method == "GET";
      const std::string token = seen.header("authorization");
      const bool is_good = token.starts_with("Bearer ") && std::stoi(token.substr(7)) >= oldest &&
                           token.find(reads ? "pull" : "push") != std::string::npos;
      if (!is_good) return refusal(reads ? "pull" : "pull,push");
      if (reads) return status(404);
      return status(seen.method == "POST" ? 202 : 201, {{"Location", std::string(kUploads) + "1"}});
    });
  }
  Reply refusal(const std::string& actions) const {
    return status(
        401, {{"WWW-Authenticate", fmt::format(R"(Bearer realm="{}",scope="repository:team/x:{}")",
                                               server.url("/token"), actions)}});
  }
  std::atomic<int> given = 0;
  std::atomic<int> oldest = 1;
  std::vector<std::string> asked() const {
    std::vector<std::string> scopes;
    for (const Seen& seen : server.seen("/token")) {
      scopes.push_back(seen.target.substr(seen.target.rfind("%3A") + 3));
    }
    return scopes;
  }
};

// Uploads that go on meanwhile have no use for a token that only reads.
TEST_F(ScopeTest, TokenThatIsRenewedToReadStaysGoodForUploads) {
  Registry to = registry();
  const std::string bytes = "bytes";
  const auto open = [&](std::uint64_t offset) {
    return std::make_unique<MemorySource>(as_bytes(bytes).subspan(offset));
  };
  EXPECT_FALSE(to.has_blob(Digest::of(bytes)));
  to.upload_blob(describe(bytes), open, nullptr);
  EXPECT_EQ(asked(), (std::vector<std::string>{"pull", "pull%2Cpush"}));
  oldest = 3;
  EXPECT_FALSE(to.has_blob(Digest::of("more")));
  to.upload_blob(describe(bytes), open, nullptr);
  EXPECT_EQ(asked(), (std::vector<std::string>{"pull", "pull%2Cpush", "pull%2Cpush"}));
}

TEST_F(ScopeTest, TokenOfAnotherThreadMayBeGoodForLess) {
  Authorizer authorizer{http, Reference::parse(server.host() + "/team/x"), options.docker_config};
  const auto refused = [&](const std::string& actions) {
    return HttpResponse{
        401, {{"www-authenticate", refusal(actions).headers[0].second}}, {}, server.url("/v2/")};
  };
  EXPECT_TRUE(authorizer.renew(refused("pull"), ""));
  const std::string reading = authorizer.current();
  EXPECT_TRUE(authorizer.renew(refused("pull"), "Bearer old"));
  EXPECT_EQ(authorizer.current(), reading);
  EXPECT_TRUE(authorizer.renew(refused("pull,push"), "Bearer old"));
  EXPECT_EQ(authorizer.current(), "Bearer 2.repository%3Ateam%2Fx%3Apull%2Cpush");
}

TEST_F(RegistryTest, IndexesOfIndexesEnd) {
  const auto index_of = [](const Digest& digest) {
    return fmt::format(
        R"({{"schemaVersion":2,"manifests":[{{"digest":"{}","size":1,"platform":{{"os":"linux","architecture":"amd64"}}}}]}})",
        digest.str());
  };
  std::string index = index_of(Digest::of(std::string_view("none")));
  for (int i = 0; i < 20; ++i) {
    const Digest digest = Digest::of(index);
    server.script("/v2/team/x/manifests/" + digest.str(),
                  {status(200, {{"Content-Type", std::string(kIndexType)}}, index)});
    index = index_of(digest);
  }
  server.script("/v2/team/x/manifests/v1",
                {status(200, {{"Content-Type", std::string(kIndexType)}}, index)});
  options.platform = "linux/amd64";
  Registry from = registry();
  EXPECT_EQ(error_of([&] { from.get_manifest("v1"); }).code(), "bad-image");
  EXPECT_LT(server.seen().size(), 10U);
}

// As of a proxy's error page gone wild: what copies it would call itself at each level.
TEST_F(RegistryTest, RefusalsOfAnyDepthAreRead) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  server.script("/v2/team/x/manifests/v1",
                {status(403, {}, R"({"errors":[{"code":"DENIED","detail":)" + deep + "}]}")});
  Registry from = registry();
  EXPECT_EQ(error_of([&] { from.get_manifest("v1"); }).code(), "denied");
}

TEST_F(RegistryTest, IndexIsResolvedForThisMachine) {
#if defined(__aarch64__)
  const std::string ours = "arm64", other = "amd64";
#else
  const std::string ours = "amd64", other = "arm64";
#endif
  const std::string manifest = R"({"schemaVersion":2,"config":{},"layers":[]})";
  const auto entry = [](const std::string& architecture, const Digest& digest) {
    return fmt::format(
        R"({{"digest":"{}","size":1,"platform":{{"os":"linux","architecture":"{}"}}}})",
        digest.str(), architecture);
  };
  const std::string index = fmt::format(R"({{"schemaVersion":2,"manifests":[{},{}]}})",
                                        entry(other, Digest::of(std::string_view("other"))),
                                        entry(ours, Digest::of(manifest)));
  server.script("/v2/team/x/manifests/v1",
                {status(200, {{"Content-Type", std::string(kIndexType)}}, index)});
  server.script("/v2/team/x/manifests/" + Digest::of(manifest).str(),
                {status(200, {{"Content-Type", std::string(kManifestType)}}, manifest)});
  Registry from = registry();
  EXPECT_EQ(from.get_manifest("v1")->bytes, manifest);

  server.script("/v2/team/x/manifests/v1",
                {status(200, {{"Content-Type", std::string(kIndexType)}}, index)});
  server.script("/v2/team/x/manifests/" + Digest::of(std::string_view("other")).str(),
                {status(200, {{"Content-Type", std::string(kManifestType)}}, "other")});
  options.platform = "linux/" + other;
  Registry foreigner = registry();
  EXPECT_EQ(foreigner.get_manifest("v1")->bytes, "other");

  const std::string foreign = fmt::format(R"({{"schemaVersion":2,"manifests":[{}]}})",
                                          entry("s390x", Digest::of(manifest)));
  server.script("/v2/team/x/manifests/v2",
                {status(200, {{"Content-Type", std::string(kIndexType)}}, foreign)});
  const Error error = error_of([&] { from.get_manifest("v2"); });
  EXPECT_EQ(error.code(), "not-found");
  EXPECT_NE(std::string(error.what()).find("linux/s390x"), std::string::npos) << error.what();
}

TEST_F(RegistryTest, VariantsThatNotEveryMachineHasAreNotChosen) {
#if defined(__aarch64__)
  const std::string ours = "arm64", usual = "v8", special = "v9";
#else
  const std::string ours = "amd64", usual = "v1", special = "v3";
#endif
  const std::string manifest = R"({"schemaVersion":2,"config":{},"layers":[]})";
  const Digest other = Digest::of(std::string_view("other"));
  const auto entry = [](const std::string& os, const std::string& architecture,
                        const std::string& variant, const Digest& digest) {
    return fmt::format(
        R"({{"digest":"{}","size":1,"platform":{{"os":"{}","architecture":"{}","variant":"{}"}}}})",
        digest.str(), os, architecture, variant);
  };
  const auto script_index = [&](const std::string& tag, const std::string& entries) {
    server.script("/v2/team/x/manifests/" + tag,
                  {status(200, {{"Content-Type", std::string(kIndexType)}},
                          R"({"schemaVersion":2,"manifests":[)" + entries + "]}")});
  };
  script_index("v1", entry("linux", ours, special, other) + "," +
                         entry("windows", ours, "", other) + "," +
                         entry("linux", ours, usual, Digest::of(manifest)));
  server.script("/v2/team/x/manifests/" + Digest::of(manifest).str(),
                {status(200, {{"Content-Type", std::string(kManifestType)}}, manifest)});
  Registry from = registry();
  EXPECT_EQ(from.get_manifest("v1")->bytes, manifest);

  script_index("v2", entry("unknown", "unknown", "", other) + "," +
                         entry("linux", "arm", "v7", other) + "," +
                         entry("linux", ours, special, other));
  const std::string text = error_of([&] { from.get_manifest("v2"); }).what();
  EXPECT_NE(text.find("linux/arm/v7"), std::string::npos) << text;
  EXPECT_NE(text.find("linux/" + ours + "/" + special), std::string::npos) << text;
  EXPECT_EQ(text.find("unknown"), std::string::npos) << text;
}

TEST_F(RegistryTest, ManifestIsVerified) {
  const std::string promised = Digest::of(std::string_view("promised")).str();
  server.script("/v2/team/x/manifests/" + promised, {status(200, {}, "{}")});
  server.script("/v2/team/x/manifests/v1",
                {status(200, {{"Docker-Content-Digest", promised}}, "{}")});
  Registry from = registry();
  EXPECT_EQ(error_of([&] { from.get_manifest(promised); }).code(), "digest-mismatch");
  EXPECT_EQ(error_of([&] { from.get_manifest("v1"); }).code(), "digest-mismatch");
}

TEST_F(RegistryTest, LoopbackMayDoWithoutTls) {
  options.plain_http = false;
  Registry from = registry();
  EXPECT_FALSE(from.get_manifest("v1"));
}

TEST_F(RegistryTest, OtherHostsNeverDoWithoutTls) {
  options.plain_http = false;
  // Reaches our server too, but is not a loopback name.
  const std::string host = "0.0.0.0" + server.host().substr(server.host().find(':'));
  Registry from{http, Reference::parse(host + "/x"), options};
  EXPECT_EQ(error_of([&] { from.get_manifest("v1"); }).code(), "network");
  for (const Seen& seen : server.seen()) ADD_FAILURE() << seen.method << " " << seen.target;
}

TEST_F(RegistryTest, WantsAHost) {
  EXPECT_EQ(error_of([&] { Registry(http, Reference::parse("jax"), options); }).code(),
            "bad-reference");
}

}  // namespace
}  // namespace mlenv
