#include "recipes/resolve/release.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/resolve/release_signature.hpp"
#include "recipes/text.hpp"
#include "tests/support/error_code.hpp"
#include "tests/unit/recipes/resolve/debian_fixture.hpp"

namespace mlenv {
namespace {

using fixture::kInRelease;
using fixture::kKey;

Keyring ring(std::string_view keys) {
  Keyring keyring;
  keyring.add_text(keys, "the test's keys");
  return keyring;
}

/// Empty when it verifies, else the error's code and text.
std::string fault(const Keyring& keyring, std::string_view text) {
  try {
    (void)keyring.verified_text(text, "`InRelease`");
    return {};
  } catch (const Error& error) {
    return error.code() + ": " + error.what();
  }
}

/// Code of what `check_release` throws, else empty.
std::string checked(const Release& release, const ReleaseChecks& checks) {
  try {
    check_release(release, checks, "`InRelease`");
    return {};
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(ReleaseSignature, GivesTheSignedTextAlone) {
  const Keyring keyring = ring(kKey);
  // The text as GnuPG was given it, with the line that had to be escaped as it was.
  EXPECT_EQ(keyring.verified_text(kInRelease, "x"), fixture::kRelease);
  const std::string more = std::string(kInRelease) + "\nOrigin: Somebody\n";
  EXPECT_EQ(keyring.verified_text(more, "x"), fixture::kRelease);
}

TEST(ReleaseSignature, AcceptsKeyringFiles) {
  const TemporaryFolder folder{temporary_root()};
  write_file(folder.path() / "key.asc", kKey, false);
  Keyring keyring;
  keyring.add_file(folder.path() / "key.asc");
  EXPECT_EQ(fault(keyring, kInRelease), "");
}

TEST(ReleaseSignature, RefusesChangedText) {
  std::string changed{kInRelease};
  changed.replace(changed.find("Codename: bookworm"), 18, "Codename: bookwork");
  EXPECT_TRUE(says(fault(ring(kKey), changed), "bad-signature: "));
  EXPECT_TRUE(says(fault(ring(kKey), changed), "8C88818C503944CC does not match the text"));
}

TEST(ReleaseSignature, RefusesUnknownAndExpiredKeys) {
  EXPECT_TRUE(says(fault(ring(kKey), fixture::kStranger),
                   "40EC7B283A5EDABD is by a key that is not in the keyring"));
  EXPECT_TRUE(says(fault(ring(fixture::kExpiredKey), fixture::kExpired),
                   "the key 2F3E053CA56D56F7 has expired"));
}

TEST(ReleaseSignature, RefusesWhatIsNotSigned) {
  EXPECT_TRUE(says(fault(ring(kKey), fixture::kRelease), "it holds no OpenPGP signature"));
  EXPECT_TRUE(says(fault(ring(kKey), ""), "it holds no OpenPGP signature"));
  EXPECT_TRUE(says(fault(ring(kKey), std::string("Origin: x\n") + std::string(kInRelease)),
                   "it holds no OpenPGP signature"));
  const std::string_view cut = kInRelease.substr(0, kInRelease.size() / 2);
  EXPECT_TRUE(says(fault(ring(kKey), cut), "bad-signature"));
}

TEST(ReleaseSignature, NamesAMissingKeyring) {
  const TemporaryFolder root{temporary_root()};
  try {
    archive_keyring("debian", root.path());
    FAIL() << "found a keyring";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-keyring");
    EXPECT_TRUE(says(error.hint(), "install the package debian-archive-keyring"));
  }
  make_folders(root.path() / "etc/apt/trusted.gpg.d");
  write_file(root.path() / "etc/apt/trusted.gpg.d/own.asc", kKey, false);
  EXPECT_EQ(fault(archive_keyring("debian", root.path()), kInRelease), "");
  EXPECT_EQ(code_of([&] { ring("not a key"); }), "no-keyring");
}

TEST(ReleaseSignature, KeysOfAnotherDistributionDoNotCount) {
  const TemporaryFolder root{temporary_root()};
  make_folders(root.path() / "etc/apt/trusted.gpg.d");
  write_file(root.path() / "etc/apt/trusted.gpg.d/own.asc", kKey, false);
  write_file(root.path() / "etc/os-release", "ID=debian\n", false);
  EXPECT_EQ(fault(archive_keyring("debian", root.path()), kInRelease), "");
  try {
    archive_keyring("ubuntu", root.path());
    FAIL() << "found a keyring";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-keyring");
    EXPECT_TRUE(says(error.hint(), "install the package ubuntu-keyring"));
  }
  make_folders(root.path() / "usr/share/keyrings");
  write_file(root.path() / "usr/share/keyrings/ubuntu-archive-keyring.gpg", kKey, false);
  EXPECT_EQ(fault(archive_keyring("ubuntu", root.path()), kInRelease), "");
}

TEST(Release, NotAutomaticLowersThePriority) {
  const std::string rest = "Date: Sat, 11 Jul 2020 10:16:37 UTC\nSHA256:\n";
  EXPECT_EQ(parse_release(rest, "x").priority(), 500);
  EXPECT_EQ(parse_release("NotAutomatic: yes\n" + rest, "x").priority(), 1);
  EXPECT_EQ(parse_release("NotAutomatic: yes\nButAutomaticUpgrades: yes\n" + rest, "x").priority(),
            100);
}

TEST(Release, ReadsDates) {
  // `date -u -d … +%s`
  EXPECT_EQ(parse_release_date("Sat, 11 Jul 2026 10:16:37 UTC"), 1783764997);
  EXPECT_EQ(parse_release_date("Thu, 29 Feb 2024 00:00:00 +0000"), 1709164800);
  EXPECT_EQ(parse_release_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  for (const char* wrong : {"", "Sat, 31 Feb 2026 10:16:37 UTC", "Sat, 11 Jul 2026 25:16:37 UTC",
                            "Sat, 11 Jul 2026 10:16:37 +0200", "11 Jul 2026 10:16:37 UTC",
                            "Sat, 11 Jul 2026 10:16 UTC", "Sat, 1x Jul 2026 10:16:37 UTC"}) {
    EXPECT_EQ(parse_release_date(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(render_time(1783764997), "2026-07-11 10:16 UTC");
}

TEST(Release, ReadsFields) {
  const std::string zeros(64, '0');
  const std::string text =
      "Origin: Debian\nLabel: Debian-Security\nSuite: stable-security\n"
      "Codename: bookworm-security\nDate: Sat, 11 Jul 2026 10:16:37 UTC\n"
      "Valid-Until: Sat, 18 Jul 2026 10:16:37 UTC\nAcquire-By-Hash: yes\n"
      "Architectures: all amd64\nComponents: updates/main updates/contrib\n"
      "MD5Sum:\n 00 1 main/binary-amd64/Packages.bz2\nSHA256:\n " +
      zeros + " 10 main/binary-amd64/Packages\n " + zeros + " 7 main/binary-amd64/Packages.gz\n " +
      zeros + " 5 main/binary-amd64/Packages.xz\n";
  const Release release = parse_release(text, "x");
  EXPECT_EQ(release.origin, "Debian");
  EXPECT_EQ(release.codename, "bookworm-security");
  EXPECT_EQ(release.components, (std::vector<std::string>{"main", "contrib"}));
  EXPECT_TRUE(release.by_hash);
  EXPECT_TRUE(release.separate_all);
  EXPECT_EQ(release.files.size(), 3U);
  ASSERT_NE(release.packages("main", "amd64"), nullptr);
  EXPECT_EQ(release.packages("main", "amd64")->first, "main/binary-amd64/Packages.xz");
  EXPECT_EQ(release.packages("main", "amd64")->second.size_bytes, 5U);
  EXPECT_EQ(release.packages("main", "arm64"), nullptr);
  EXPECT_FALSE(parse_release(fixture::kRelease, "x").separate_all);
  for (const char* wrong : {"Origin: Debian\n", "Date: yesterday\nSHA256:\n",
                            "Date: Sat, 11 Jul 2026 10:16:37 UTC\n"}) {
    EXPECT_EQ(code_of([&] { parse_release(wrong, "x"); }), "release-invalid") << wrong;
  }
}

TEST(Release, IsCheckedForSuiteAndTime) {
  Release release;
  release.suite = "stable";
  release.codename = "bookworm";
  release.date = 1'000'000;
  release.valid_until = 2'000'000;
  EXPECT_EQ(checked(release, {"bookworm", 1'500'000, true}), "");
  EXPECT_EQ(checked(release, {"stable", 1'500'000, true}), "");
  EXPECT_EQ(checked(release, {"trixie", 1'500'000, true}), "release-mismatch");
  EXPECT_EQ(checked(release, {"bookworm", 2'000'001, true}), "index-expired");
  EXPECT_EQ(checked(release, {"bookworm", 2'000'001, false}), "");
  EXPECT_EQ(checked(release, {"bookworm", 900'000, true}), "index-expired");
  EXPECT_EQ(checked(release, {"bookworm", 990'000, true}), "");
}

}  // namespace
}  // namespace mlenv
