#include "images/reference.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

const std::string kReferenceDigest = "sha256:" + std::string(64, 'a');

struct ReferenceCase {
  std::string text, host, repository, tag;
  bool digest = false;
};

class GoodReference : public testing::TestWithParam<ReferenceCase> {};

TEST_P(GoodReference, Parses) {
  const ReferenceCase& expected = GetParam();
  const Reference reference = Reference::parse(expected.text);
  EXPECT_EQ(reference.host(), expected.host);
  EXPECT_EQ(reference.repository(), expected.repository);
  EXPECT_EQ(reference.tag(), expected.tag);
  EXPECT_EQ(reference.digest().has_value(), expected.digest);
  // What it prints means the same again.
  EXPECT_EQ(Reference::parse(reference.str()).str(), reference.str());
}

// The forms are those of the tests of github.com/distribution/reference.
INSTANTIATE_TEST_SUITE_P(
    Forms, GoodReference,
    testing::Values(ReferenceCase{"jax", "", "jax", "latest"},
                    ReferenceCase{"jax:v1", "", "jax", "v1"},
                    ReferenceCase{"team/jax:v1.2-rc_3", "", "team/jax", "v1.2-rc_3"},
                    ReferenceCase{"localhost/jax", "localhost", "jax", "latest"},
                    ReferenceCase{"localhost:5000/jax:v1", "localhost:5000", "jax", "v1"},
                    ReferenceCase{"127.0.0.1:5000/a/b/c", "127.0.0.1:5000", "a/b/c", "latest"},
                    ReferenceCase{"[::1]:5000/x", "[::1]:5000", "x", "latest"},
                    ReferenceCase{"[2001:db8::1]/x", "[2001:db8::1]", "x", "latest"},
                    ReferenceCase{"Registry.Example.org/x", "Registry.Example.org", "x", "latest"},
                    ReferenceCase{"registry.example.org/x@" + kReferenceDigest,
                                  "registry.example.org", "x", "", true},
                    ReferenceCase{"registry.example.org/x:t@" + kReferenceDigest,
                                  "registry.example.org", "x", "t", true},
                    ReferenceCase{"a.b__c-d---e", "", "a.b__c-d---e", "latest"},
                    ReferenceCase{"x:_underscore", "", "x", "_underscore"},
                    ReferenceCase{"xn--n3h.com/myimage:xn--n3h.com", "xn--n3h.com", "myimage",
                                  "xn--n3h.com"},
                    ReferenceCase{"5000/x", "", "5000/x", "latest"}));

struct BadCase {
  std::string text, why;
};

class BadReference : public testing::TestWithParam<BadCase> {};

TEST_P(BadReference, SaysWhichPart) {
  try {
    Reference::parse(GetParam().text);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-reference");
    EXPECT_EQ(error.kind(), Kind::usage);
    EXPECT_NE(std::string(error.what()).find(GetParam().why), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, BadReference,
    testing::Values(
        BadCase{"", "empty"}, BadCase{":v1", "no repository name"}, BadCase{"Jax", "upper-case"},
        BadCase{"localhost:5000/Team/jax", "`Team`"}, BadCase{"jax:", "nothing follows"},
        BadCase{"jax:.v1", "tag `.v1`"}, BadCase{"jax:" + std::string(129, 'a'), "longer than 128"},
        BadCase{"a//b", "empty part"}, BadCase{"a/", "empty part"}, BadCase{"-a", "begin and end"},
        BadCase{"a..b", "`..`"}, BadCase{"a___b", "`___`"}, BadCase{"a b", "character ` `"},
        BadCase{"jax@sha256:12", "sha256:12"}, BadCase{"jax@", "digest"},
        BadCase{"https://host.org/x", "begins with `https://`"},
        BadCase{"host.org:port/x", "port `port`"}, BadCase{"host_.org/x", "host name"},
        BadCase{"[::1/x", "lacks its `]`"}, BadCase{"[xyz]:5/x", "IPv6"},
        BadCase{"user:pw@host.org/x", "login"}, BadCase{std::string(256, 'a'), "longer than 255"}));

TEST(ReferenceTest, APasswordIsNotRepeated) {
  for (const char* text :
       {"user:pw@host.org/x", "https://user:pw@host.org:5/x:v1", "user:p@w@host.org/x"}) {
    try {
      Reference::parse(text);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "bad-reference");
      const std::string said = error.what() + (" " + error.hint());
      EXPECT_EQ(said.find("pw"), std::string::npos) << said;
      EXPECT_EQ(said.find("p@w"), std::string::npos) << said;
    }
  }
}

TEST(ReferenceTest, ManifestName) {
  EXPECT_EQ(Reference::parse("x:t").manifest_name(), "t");
  EXPECT_EQ(Reference::parse("x:t@" + kReferenceDigest).manifest_name(), kReferenceDigest);
}

}  // namespace
}  // namespace mlenv
