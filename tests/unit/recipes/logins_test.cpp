#include "recipes/logins.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

std::string address_in(std::string_view text) {
  const TextSpan span = find_address(text);
  return std::string(text.substr(span.start, span.size));
}

TEST(Logins, TheFirstAddressOfATextIsFound) {
  EXPECT_EQ(address_in("Failed to fetch: `https://h.example/simple/`, twice"),
            "https://h.example/simple/");
  EXPECT_EQ(address_in("a:// b ://c (http://h.example/x) https://other.example"),
            "http://h.example/x");
  EXPECT_EQ(address_in("none here"), "");
  EXPECT_EQ(address_in("https://"), "");
}

TEST(Logins, AnAddressOfAnyLengthIsShownWithoutItsLogin) {
  const std::string host = "https://me:secret@h.example/" + std::string(200'000, 'a');
  const std::string shown = with_display_url("at " + host + " now");
  EXPECT_EQ(shown.find("secret"), std::string::npos);
  EXPECT_TRUE(shown.starts_with("at https://h.example/"));
  EXPECT_TRUE(shown.ends_with(" now"));
}

}  // namespace
}  // namespace mlenv
