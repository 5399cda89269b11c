#include "images/registry_hosts.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

RegistryRule rule(std::string prefix, std::vector<RegistryMirror> mirrors) {
  return {std::move(prefix), "", false, false, false, std::move(mirrors), "registries.conf"};
}

std::vector<std::string> place_names(const RegistryHosts& hosts, const std::string& reference) {
  std::vector<std::string> found;
  for (const RegistryPlace& place : pull_places(hosts, Reference::parse(reference))) {
    found.push_back(place.where.str());
  }
  return found;
}
const std::string kAtDigest = "@sha256:" + std::string(64, 'a');

TEST(RegistryHosts, MirrorsComeFirstAndTheRegistryLast) {
  const RegistryHosts hosts{
      {{rule("r.example", {{"near.example:5000", false, false, RegistryMirror::Use::all},
                           {"far.example/proxy", false, false, RegistryMirror::Use::all}})},
       {rule("r.example", {{"third.example", false, false, RegistryMirror::Use::all}})}},
      {}};
  EXPECT_EQ(place_names(hosts, "r.example/team/x:v1"),
            (Strings{"near.example:5000/team/x:v1", "far.example/proxy/team/x:v1",
                     "third.example/team/x:v1", "r.example/team/x:v1"}));
  EXPECT_EQ(place_names(hosts, "r.example:5000/x:v1"), Strings{"r.example:5000/x:v1"});
  EXPECT_EQ(place_names(hosts, "r.example.org/x:v1"), Strings{"r.example.org/x:v1"});
  const auto places = pull_places(hosts, Reference::parse("r.example/x"));
  EXPECT_TRUE(places.front().mirror);
  EXPECT_FALSE(places.back().mirror);
}

TEST(RegistryHosts, TheLongestPrefixCountsAlone) {
  const RegistryHosts hosts{
      {{rule("r.example/team", {{"a.example", false, false, RegistryMirror::Use::all}}),
        rule("r.example", {{"b.example", false, false, RegistryMirror::Use::all}}),
        rule("*.example", {{"c.example", false, false, RegistryMirror::Use::all}})}},
      {}};
  EXPECT_EQ(place_names(hosts, "r.example/team/x:v1"),
            (Strings{"a.example/x:v1", "r.example/team/x:v1"}));
  EXPECT_EQ(place_names(hosts, "r.example/teams/x:v1"),
            (Strings{"b.example/teams/x:v1", "r.example/teams/x:v1"}));
  EXPECT_EQ(place_names(hosts, "sub.s.example/x:v1"),
            (Strings{"c.example/x:v1", "sub.s.example/x:v1"}));
  EXPECT_EQ(place_names(hosts, "example/x:v1").size(), 1U);
}

TEST(RegistryHosts, SomeMirrorsAreForDigestsOrTagsAlone) {
  const RegistryHosts hosts{
      {{rule("r.example", {{"d.example", false, false, RegistryMirror::Use::digests},
                           {"t.example", false, false, RegistryMirror::Use::tags}})}},
      {}};
  EXPECT_EQ(place_names(hosts, "r.example/x:v1"), (Strings{"t.example/x:v1", "r.example/x:v1"}));
  EXPECT_EQ(place_names(hosts, "r.example/x" + kAtDigest).front().substr(0, 12), "d.example/x@");
}

TEST(RegistryHosts, LocationTakesThePrefixsPlaceForPullsAlone) {
  RegistryRule moved = rule("old.example/team", {});
  moved.location = "new.example";
  moved.insecure = true;
  const RegistryHosts hosts{{{moved}}, {}};
  EXPECT_EQ(place_names(hosts, "old.example/team/x:v1"), Strings{"new.example/x:v1"});
  const RegistryPlace push = push_place(hosts, Reference::parse("old.example/team/x:v1"));
  EXPECT_EQ(push.where.str(), "old.example/team/x:v1");
  EXPECT_FALSE(push.insecure);
}

TEST(RegistryHosts, BlockedRegistriesAreNamed) {
  RegistryRule blocked = rule("r.example", {});
  blocked.blocked = true;
  const RegistryHosts hosts{{{blocked}}, {}};
  const auto pull = [&] { pull_places(hosts, Reference::parse("r.example/x")); };
  EXPECT_EQ(code_of(pull), "registry-blocked");
  EXPECT_NE(std::string(error_of(pull).what()).find("registries.conf"), std::string::npos);
  EXPECT_EQ(code_of([&] { push_place(hosts, Reference::parse("r.example/x")); }),
            "registry-blocked");
  EXPECT_EQ(place_names(hosts, "s.example/x:v1").size(), 1U);
}

TEST(RegistryHosts, ALocationThatIsNoneIsTheFilesMistake) {
  const RegistryHosts hosts{
      {{rule("r.example", {{"Not A Host", false, false, RegistryMirror::Use::all}})}}, {}};
  EXPECT_EQ(code_of([&] { pull_places(hosts, Reference::parse("r.example/x")); }),
            "config-invalid");
}

TEST(RegistryHosts, CertificatesOfAFolder) {
  const TemporaryFolder folder{temporary_root()};
  const std::vector<fs::path> folders{folder.path() / "own", folder.path() / "machine"};
  const auto put = [](const fs::path& path) {
    make_folders(path.parent_path());
    write_file(path, "x");
  };
  put(folders[1] / "r.example:5000/ca.crt");
  put(folders[1] / "r.example:5000/b.crt");
  put(folders[1] / "r.example:5000/client.cert");
  put(folders[1] / "r.example:5000/client.key");
  put(folders[1] / "r.example/machine.crt");
  put(folders[0] / "r.example/own.crt");
  const HostTls tls = tls_of(folders, "https://r.example:5000/v2/");
  EXPECT_EQ(tls.authorities.size(), 2U);
  EXPECT_EQ(fs::path(tls.certificate).filename(), "client.cert");
  EXPECT_EQ(fs::path(tls.key).filename(), "client.key");
  const HostTls own = tls_of(folders, "https://r.example");
  ASSERT_EQ(own.authorities.size(), 1U);
  EXPECT_EQ(fs::path(own.authorities[0]).filename(), "own.crt");
  EXPECT_TRUE(tls_of(folders, "https://s.example").authorities.empty());
  put(folders[0] / "t.example:443/half.cert");
  EXPECT_EQ(code_of([&] { tls_of(folders, "https://t.example"); }), "config-invalid");
}

}  // namespace
}  // namespace mlenv
