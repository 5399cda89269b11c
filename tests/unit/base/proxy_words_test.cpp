#include "base/proxy_words.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(ProxyWords, AnAddressThatLibcurlCannotReadIsNotShown) {
  EXPECT_EQ(without_proxy("Unsupported proxy syntax in 'http://me:s3cret@h:x'"),
            "Unsupported proxy syntax in '***'");
  EXPECT_EQ(without_proxy("Unsupported proxy syntax in 'me:s3'cret@h:x': Port number was not a "
                          "decimal number"),
            "Unsupported proxy syntax in '***': Port number was not a decimal number");
  EXPECT_EQ(without_proxy("fatal: Unsupported proxy scheme for 'ftp://me:s3cret@h'\nmore 'x'\n"),
            "fatal: Unsupported proxy scheme for '***'\nmore 'x'\n");
  EXPECT_EQ(without_proxy("Unsupported proxy syntax in '"), "Unsupported proxy syntax in '***");
  EXPECT_EQ(without_proxy("Could not resolve proxy: h"), "Could not resolve proxy: h");
}

}  // namespace
}  // namespace mlenv
