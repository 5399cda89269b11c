#include "images/token_scopes.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

std::string sum_of(std::initializer_list<const char*> all) {
  TokenScopes scopes;
  for (const char* one : all) scopes.add(one);
  return scopes.str();
}

TEST(TokenScopes, OneIsKeptAsItIs) {
  for (const char* one : {"repository:team/x:pull", "repository:team/x:push,pull", "registry",
                          "repository:host:5000/x:pull repository:team/base:pull"}) {
    EXPECT_EQ(sum_of({one}), one);
  }
  EXPECT_EQ(sum_of({}), "");
  EXPECT_EQ(sum_of({"", "a:pull", ""}), "a:pull");
}

TEST(TokenScopes, ActionsOfOneRepositoryAddUp) {
  EXPECT_EQ(sum_of({"a:pull", "a:pull,push", "a:pull"}), "a:pull,push");
  EXPECT_EQ(sum_of({"a:push", "b:pull", "a:pull b:pull"}), "a:push,pull b:pull");
}

TEST(TokenScopes, PullingAloneWhateverIsAskedFor) {
  TokenScopes scopes;
  scopes.only_pull();
  scopes.add("repository:team/x:push,pull,delete registry:catalog:* repository:b:*");
  EXPECT_EQ(scopes.str(), "repository:team/x:pull repository:b:pull");
  EXPECT_TRUE(scopes.hold("repository:team/x:push"));
}

TEST(TokenScopes, HoldsWhatWasAdded) {
  TokenScopes scopes;
  EXPECT_TRUE(scopes.hold(""));
  EXPECT_FALSE(scopes.hold("a:pull"));
  scopes.add("a:pull,push");
  EXPECT_TRUE(scopes.hold("a:push"));
  EXPECT_TRUE(scopes.hold("a:push,pull"));
  EXPECT_FALSE(scopes.hold("a:pull,delete"));
  EXPECT_FALSE(scopes.hold("a:pull b:pull"));
}

}  // namespace
}  // namespace mlenv
