#include "recipes/resolve/page_wheels.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/fault_server.hpp"

namespace mlenv {
namespace {

class PageWheelsTest : public testing::Test {
 protected:
  PylockWheel learned() {
    PylockWheel wheel;
    wheel.file = "a-1-py3-none-any.whl";
    wheel.url = server_.url("/a-1-py3-none-any.whl");
    QuietProgress progress;
    learn_digest(wheel, http_, cache_.path(), progress);
    return wheel;
  }
  void serve(const std::string& body, const std::string& etag) {
    test::Reply answer = test::reply(200, body);
    if (!etag.empty()) answer.headers.emplace_back("ETag", etag);
    server_.otherwise([answer](const test::Seen&) { return answer; });
  }
  std::size_t gets() const {
    std::size_t count = 0;
    for (const test::Seen& one : server_.seen()) count += one.method == "GET" ? 1U : 0U;
    return count;
  }

  test::FaultServer server_;
  Http http_;
  TemporaryFolder cache_{temporary_root()};
};

TEST_F(PageWheelsTest, AreFetchedOnceAsLongAsTheServerSaysSo) {
  serve("one", "\"1\"");
  EXPECT_EQ(learned().digest, Digest::of("one"));
  const PylockWheel again = learned();
  EXPECT_EQ(again.digest, Digest::of("one"));
  EXPECT_EQ(again.size_bytes, 3U);
  EXPECT_EQ(gets(), 1U);
  serve("two", "\"2\"");
  EXPECT_EQ(learned().digest, Digest::of("two"));
  EXPECT_EQ(gets(), 2U);
}

TEST_F(PageWheelsTest, AServerThatDoesNotTellIsAskedAnew) {
  serve("one", "");
  (void)learned();
  serve("two", "");
  EXPECT_EQ(learned().digest, Digest::of("two"));
}

TEST_F(PageWheelsTest, ADamagedCopyIsFetchedAnew) {
  serve("one", "\"1\"");
  (void)learned();
  write_file(cache_.path() / "page-wheels" / Digest::of("one").hex(), "own", false);
  EXPECT_EQ(learned().digest, Digest::of("one"));
  EXPECT_EQ(gets(), 2U);
}

TEST_F(PageWheelsTest, WhatNoLockUsedForAMonthGoes) {
  serve("one", "\"1\"");
  (void)learned();
  const fs::path folder = cache_.path() / "page-wheels";
  const fs::path old = folder / Digest::of("old").hex();
  const fs::path others = folder / "notes.txt";
  for (const fs::path& path : {old, others}) {
    write_file(path, "x", false);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours{24 * 40});
  }
  (void)learned();
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(others));
  EXPECT_TRUE(fs::exists(folder / Digest::of("one").hex()));
}

TEST_F(PageWheelsTest, APipeInAFolderIsNotWaitedFor) {
  const fs::path pipe = cache_.path() / "a-1-py3-none-any.whl";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  PylockWheel wheel;
  wheel.url = "file://" + pipe.string();
  QuietProgress progress;
  EXPECT_EQ(code_of([&] { learn_digest(wheel, http_, cache_.path(), progress); }), "not-a-file");
}

}  // namespace
}  // namespace mlenv
