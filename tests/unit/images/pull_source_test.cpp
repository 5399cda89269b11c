#include "images/pull_source.hpp"

#include <gtest/gtest.h>

#include "images/credentials.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/fault_server.hpp"

namespace mlenv {
namespace {

using test::FaultServer;
using test::reply;
using test::Reply;
using test::Seen;

class PullSourceTest : public testing::Test {
 protected:
  PullSourceTest() : http(http_options()) {
    options.docker_config = folder.path() / "config.json";
    RegistryRule rule;
    rule.prefix = origin.host();
    rule.mirrors = {{mirror.host() + "/cache", false, true, RegistryMirror::Use::all}};
    rule.said_in = "config.yaml";
    options.hosts.rules = {{rule}};
    options.plain_http = true;
  }
  static HttpOptions http_options() {
    HttpOptions made;
    made.pause = [](std::chrono::milliseconds) {};
    return made;
  }
  PullSource source() { return {http, Reference::parse(origin.host() + "/team/x:v1"), options}; }
  void fetch(PullSource& from) {
    Activity activity{progress, "pull", blob.size_bytes};
    from.fetch_blob(store, blob, activity);
  }

  static constexpr std::string_view kManifest = R"({"schemaVersion":2})";
  const std::string bytes = "a layer";
  const Descriptor blob{std::string(kLayerGzipType), Digest::of(bytes), bytes.size()};
  const std::string at_origin = "/v2/team/x/blobs/" + blob.digest.str();
  const std::string at_mirror = "/v2/cache/team/x/blobs/" + blob.digest.str();
  TemporaryFolder folder{temporary_root()};
  Store store{folder.path() / "store"};
  FaultServer origin, mirror;
  QuietProgress progress;
  RegistryOptions options;
  Http http;
};

TEST_F(PullSourceTest, WhatTheMirrorHasIsNotAskedOfTheRegistry) {
  mirror.script("/v2/cache/team/x/manifests/v1", {reply(200, std::string(kManifest))});
  mirror.script(at_mirror, {reply(200, bytes)});
  PullSource from = source();
  EXPECT_EQ(from.get_manifest("v1").value().bytes, kManifest);
  fetch(from);
  EXPECT_TRUE(store.has(blob.digest));
  EXPECT_TRUE(origin.seen().empty());
}

TEST_F(PullSourceTest, WhatItLacksComesFromTheRegistry) {
  mirror.otherwise([](const Seen&) { return reply(404); });
  origin.script("/v2/team/x/manifests/v1", {reply(200, std::string(kManifest))});
  origin.script(at_origin, {reply(200, bytes)});
  PullSource from = source();
  EXPECT_EQ(from.get_manifest("v1").value().bytes, kManifest);
  fetch(from);
  EXPECT_TRUE(store.has(blob.digest));
  EXPECT_EQ(mirror.seen(at_mirror).size(), 1U);
}

TEST_F(PullSourceTest, WrongBytesOfAMirrorAreNotTaken) {
  mirror.script(at_mirror, {reply(200, "a Layer")});
  origin.script(at_origin, {reply(200, bytes)});
  PullSource from = source();
  fetch(from);
  EXPECT_EQ(store.read(blob.digest), bytes);
}

TEST_F(PullSourceTest, AMirrorThatIsAwayIsAskedOnce) {
  options.hosts.rules[0][0].mirrors[0].location = "127.0.0.1:1";
  origin.script("/v2/team/x/manifests/v1", {reply(200, std::string(kManifest))});
  origin.script(at_origin, {reply(200, bytes)});
  int pauses = 0;
  HttpOptions counted;
  counted.pause = [&](std::chrono::milliseconds) { ++pauses; };
  Http other{counted};
  PullSource from{other, Reference::parse(origin.host() + "/team/x:v1"), options};
  EXPECT_TRUE(from.get_manifest("v1"));
  const int once = pauses;
  fetch(from);
  EXPECT_EQ(pauses, once);
}

TEST_F(PullSourceTest, TheRegistrysOwnWordComesOut) {
  mirror.otherwise([](const Seen&) { return reply(500); });
  origin.otherwise([](const Seen&) { return reply(404); });
  PullSource from = source();
  EXPECT_FALSE(from.get_manifest("v1"));
  EXPECT_EQ(code_of([&] { fetch(from); }), "http-status");
  origin.otherwise([](const Seen&) { return reply(403); });
  EXPECT_EQ(code_of([&] { from.get_manifest("v1"); }), "denied");
}

TEST_F(PullSourceTest, TheRegistrysLoginStaysThere) {
  write_file(folder.path() / "config.json",
             fmt::format(R"({{"auths": {{"{}": {{"auth": "{}"}}}}}})", origin.host(),
                         base64_encode("ann:secret")));
  Reply wants = reply(401);
  wants.headers = {{"WWW-Authenticate", "Basic realm=\"r\""}};
  mirror.otherwise([&](const Seen&) { return wants; });
  origin.script("/v2/team/x/manifests/v1", {wants, reply(200, std::string(kManifest))});
  PullSource from = source();
  EXPECT_TRUE(from.get_manifest("v1"));
  for (const Seen& seen : mirror.seen()) EXPECT_EQ(seen.header("authorization"), "");
  EXPECT_EQ(origin.seen().at(1).header("authorization"), "Basic YW5uOnNlY3JldA==");
}

}  // namespace
}  // namespace mlenv
