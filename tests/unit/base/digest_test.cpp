#include "base/digest.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/child.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/generator.hpp"

namespace mlenv {
namespace {

// FIPS 180-4 example values.
constexpr std::string_view kEmpty =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Digest, KnownValues) {
  EXPECT_EQ(Digest::of("").hex(), kEmpty);
  EXPECT_EQ(Digest::of("abc").hex(), kAbc);
  EXPECT_EQ(Digest::of("abc").str(), "sha256:" + std::string(kAbc));
  EXPECT_EQ(Digest::of("abc").brief(), "ba7816bf8f01");
  EXPECT_EQ(md5_hex(as_bytes("abc")), "900150983cd24fb0d6963f7d28e17f72");
}

TEST(Digest, AgreesWithSha256sum) {
  const std::string text = test::noise(1'000'001, 1);
  const std::string line = test::output_of({"sha256sum"}, text);
  EXPECT_EQ(line, Digest::of(text).hex() + "  -\n");
}

TEST(Digest, IncrementalEqualsWhole) {
  const std::string text = test::noise(10'000, 2);
  Sha256 hash;
  for (std::size_t at = 0; at < text.size(); at += 777) hash.write(as_bytes(text.substr(at, 777)));
  EXPECT_EQ(hash.size_bytes(), text.size());
  EXPECT_EQ(hash.finish(), Digest::of(text));
}

TEST(Digest, ParsesOnlyTheExactForm) {
  const std::string good = "sha256:" + std::string(kAbc);
  EXPECT_EQ(Digest::parse(good), Digest::of("abc"));
  EXPECT_EQ(Digest::from_hex(kAbc), Digest::of("abc"));
  for (const std::string& bad :
       {std::string(kAbc), "sha512:" + std::string(kAbc), good + "0", good.substr(0, 70),
        std::string("sha256:"), "sha256:BA" + std::string(kAbc.substr(2)),
        "sha256:g" + std::string(kAbc.substr(1))}) {
    EXPECT_EQ(code_of([&] { (void)Digest::parse(bad); }), "bad-digest") << bad;
  }
}

TEST(VerifyingSink, PassesTheRightBytes) {
  StringSink out;
  VerifyingSink sink{out, Digest::of("hello"), 5, "greeting"};
  sink.write(as_bytes("he"));
  sink.write(as_bytes("llo"));
  sink.finish();
  EXPECT_EQ(out.text, "hello");
}

TEST(VerifyingSink, RefusesOthersAndStopsEarly) {
  StringSink out;
  VerifyingSink longer{out, Digest::of("hello"), 5, "greeting"};
  longer.write(as_bytes("hell"));
  EXPECT_EQ(code_of([&] { longer.write(as_bytes("oo")); }), "digest-mismatch");
  EXPECT_EQ(out.text, "hell");
  VerifyingSink shorter{out, Digest::of("hello"), 5, "greeting"};
  shorter.write(as_bytes("hell"));
  EXPECT_EQ(code_of([&] { shorter.finish(); }), "digest-mismatch");
  VerifyingSink other{out, Digest::of("hello"), 5, "greeting"};
  other.write(as_bytes("jello"));
  EXPECT_EQ(code_of([&] { other.finish(); }), "digest-mismatch");
}

}  // namespace
}  // namespace mlenv
