#include "base/error.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using Frames = std::vector<std::string>;

TEST(Error, FramesRunFromIntentToCause) {
  Error error = failure("code", "cannot open `{}`", "x").because("it is absent");
  error.while_doing("unpacking");
  error.while_doing("starting");
  EXPECT_EQ(error.frames(), (Frames{"starting", "unpacking", "cannot open `x`", "it is absent"}));
  EXPECT_STREQ(error.what(), "starting: unpacking: cannot open `x`: it is absent");
}

TEST(Error, TheHintNearestTheCauseStays) {
  const Error error = failure("code", "x").hint("first").hint("second");
  EXPECT_EQ(error.hint(), "first");
}

TEST(Error, AnotherHintLeavesAllElse) {
  const Error error = refusal("code", "x").because("y").hint("first").remedy({{"system", {"gcc"}}});
  const Error other = error.with_hint("second");
  EXPECT_EQ(other.hint(), "second");
  EXPECT_EQ(other.kind(), Kind::no);
  EXPECT_EQ(other.code(), "code");
  EXPECT_EQ(other.frames(), (Frames{"x", "y"}));
  EXPECT_STREQ(other.what(), "x: y");
  EXPECT_EQ(other.remedy(), (Remedy{{"system", {"gcc"}}}));
  EXPECT_EQ(error.with_hint({}).hint("third").hint(), "third");
  EXPECT_EQ(Error(error).remedy({{"exclude", {"a"}}}).remedy(), error.remedy());
}

TEST(Error, MakersSetTheKind) {
  EXPECT_EQ(failure("a", "x").kind(), Kind::failed);
  EXPECT_EQ(usage_error("a", "x").kind(), Kind::usage);
  EXPECT_EQ(refusal("a", "x").kind(), Kind::no);
  EXPECT_EQ(failure("stable", "x").code(), "stable");
}

TEST(Error, OsErrorsAreSortedByErrno) {
  EXPECT_EQ(os_error(ENOENT, "x").code(), "absent");
  EXPECT_EQ(os_error(EACCES, "x").code(), "permission");
  EXPECT_EQ(os_error(EPERM, "x").code(), "permission");
  EXPECT_EQ(os_error(EDQUOT, "x").code(), "no-space");
  EXPECT_EQ(os_error(EIO, "x").code(), "io");
  EXPECT_EQ(os_error(ENOENT, "x").frames().back(), "No such file or directory");
  EXPECT_FALSE(os_error(ENOSPC, "x").hint().empty());
  EXPECT_EQ(os_error(EMFILE, "x").hint(), "let a process open more files: `ulimit -n 1024`");
}

TEST(Error, WhileDoingAddsAFrameAndGivesTheResult) {
  EXPECT_EQ(while_doing("counting", [] { return 7; }), 7);
  try {
    while_doing("outer", [] { while_doing("inner", [] { throw failure("code", "cause"); }); });
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.frames(), (Frames{"outer", "inner", "cause"}));
    EXPECT_EQ(error.code(), "code");
  }
}

}  // namespace
}  // namespace mlenv
