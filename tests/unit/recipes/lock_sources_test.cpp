// Wheels of a lock that were built from their source.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

LockedWheel built_wheel(const std::string& name, const std::string& version) {
  const std::string file = name + "-" + version + "-py3-none-any.whl";
  return {name, version, file, 1, Digest::of(file), false};
}

Lock lock_with_sources() {
  Lock lock;
  lock.request.base = "debian:bookworm";
  lock.settings.name = "a";
  lock.settings.workdir = "/";
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.python = "3.11.2";
  lock.wheels = {built_wheel("docopt", "0.6.2"), built_wheel("six", "1.16")};
  lock.build_wheels = {built_wheel("setuptools", "80.1"), built_wheel("setuptools", "80.2")};
  lock.sources = {{"docopt",
                   "0.6.2",
                   "docopt-0.6.2.tar.gz",
                   2,
                   Digest::of("s"),
                   {"setuptools-80.2-py3-none-any.whl"}}};
  lock.revision = least_revision(lock);
  return lock;
}

std::string source_refusal(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  try {
    parse_lock(text.replace(at, from.size(), to), "r.lock");
    return {};
  } catch (const Error& error) {
    return error.frames().front();
  }
}

TEST(LockSources, SurviveWritingAndReading) {
  const Lock lock = lock_with_sources();
  EXPECT_EQ(lock.revision, 2);
  EXPECT_EQ(parse_lock(render_lock(lock), "r.lock"), lock);
  ASSERT_NE(lock.source_of(lock.wheels[0]), nullptr);
  EXPECT_EQ(lock.source_of(lock.wheels[1]), nullptr);
}

TEST(LockSources, NameWhatTheLockHolds) {
  const std::string text = render_lock(lock_with_sources());
  EXPECT_TRUE(
      says(source_refusal(text, "built-with = [\"setuptools-80.2", "built-with = [\"setuptools-8"),
           "is not in `build-wheels`"));
  EXPECT_TRUE(says(source_refusal(text, "version = \"0.6.2\", file = \"docopt-0.6.2.tar",
                                  "version = \"0.6.3\", file = \"docopt-0.6.2.tar"),
                   "there is no wheel of `docopt`"));
  EXPECT_TRUE(
      says(source_refusal(text, "\"docopt-0.6.2.tar.gz\"", "\"../x.tar.gz\""), "a plain name"));
}

Lock named() {
  Lock lock = lock_with_sources();
  const std::string commit = "0123456789abcdef0123456789abcdef01234567";
  LockedSource git{"docopt", "0.6.2", {}, 0, Digest::of("t"), {}};
  git.git = "https://h.example/t/docopt";
  git.reference = "main";
  git.commit = commit;
  git.subdirectory = "py";
  git.describe = "v0.6.2-0-g0123456";
  LockedSource built_wheel{"six", "1.16", "six-1.16-py3-none-any.whl", 2, Digest::of("w"), {}};
  built_wheel.path = "./dist/six-1.16-py3-none-any.whl";
  lock.sources = {git, built_wheel};
  lock.build_wheels.clear();
  return lock;
}

TEST(LockSources, ThatTheRecipeNamesByAddress) {
  const Lock lock = named();
  const std::string text = render_lock(lock);
  EXPECT_EQ(parse_lock(text, "r.lock"), lock);
  EXPECT_EQ(lock.sources[0].shown(), "https://h.example/t/docopt at 0123456789ab");
  EXPECT_TRUE(
      says(text,
           "  { name = \"docopt\", version = \"0.6.2\", git = "
           "\"https://h.example/t/docopt\", reference = \"main\", commit = "
           "\"0123456789abcdef0123456789abcdef01234567\", subdirectory = \"py\", describe = "
           "\"v0.6.2-0-g0123456\", sha256 "));
  for (const auto& [from, to, words] :
       {std::tuple{"https://h.ex", "https://me:word@h.ex", "is not an address"},
        {"https://h.example/t/docopt", "/srv/x", "is not an address"},
        {"commit = \"01", "commit = \"zz", "40 lower-case hex digits"},
        {"\"./dist/six", "\"/dist/six", "is not an address"},
        {"subdirectory = \"py\"", "subdirectory = \"../p\"", "is a path in the source"},
        {"git = \"https", "path = \"./x\", git = \"https", "one of `git`, `path` and `url`"},
        {"path = \"./dist/six-1.16-py3-none-any.whl\"", "commit = \"a\"",
         "`describe` are of `git`"}}) {
    const std::string said = source_refusal(text, from, to);
    EXPECT_TRUE(says(said, words)) << to << ": " << said;
  }
}

TEST(LockSources, AreAmongTheDifferences) {
  Lock other = lock_with_sources();
  other.sources[0].built_with = {"setuptools-80.1-py3-none-any.whl"};
  const auto lines = lock_differences(lock_with_sources(), other);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(says(lines[0], "source of docopt: docopt-0.6.2.tar.gz ")) << lines[0];
  EXPECT_TRUE(says(lines[0], "setuptools 80.1")) << lines[0];
}

}  // namespace
}  // namespace mlenv
