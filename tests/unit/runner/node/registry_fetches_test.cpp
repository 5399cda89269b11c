// What a node makes of what curl(1) says. A shell script stands for curl: it shows what it was
// told, and answers as a test says. What the real one does with its configuration is for
// tests/e2e/jobs-pull-from.sh.
#include "runner/node/registry_fetches.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>

#include "base/text.hpp"
#include "images/partial_blob.hpp"

namespace mlenv::job {
namespace {

const std::string kFetchedBlob = "sha256:" + std::string(64, 'a');
constexpr std::uint64_t kSize = 2 * kPieceBytes + 5000;  // three pieces
constexpr const char* kPartHead =
    R"(printf 'HTTP/1.1 206 Part\r\nContent-Range: bytes 1048576-2102151/2102152\r\n\r\n')";

class RegistryFetchesTest : public ::testing::Test {
 protected:
  RegistryFetchesTest()
      : folder_(temporary_root()),
        fetches_({[this](const std::string& digest, std::uint64_t offset, std::string_view bytes) {
                    EXPECT_EQ(digest, kFetchedBlob);
                    std::string& got = got_[offset / kPieceBytes];
                    EXPECT_EQ(offset % kPieceBytes, got.size());
                    got += bytes;
                  },
                  [this](const std::string&, std::uint64_t piece) { whole_.push_back(piece); },
                  [this](const RangeEnded& range) { ended_.push_back(range); }}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread of a test asks
    if (const char* const path = std::getenv("PATH")) path_before_ = path;
    set_path(folder_.path().string() + ":" + path_before_);
    for (std::uint64_t i = 0; i < kSize; ++i) blob_ += static_cast<char>(i * 7 + i / 251);
    write_file(at("blob"), blob_);
    write_file(at("curl"), "#!/bin/sh\ncd '" + folder_.path().string() +
                               "'\ncount=$(cat count 2>/dev/null || echo 0)\ncount=$((count + 1))\n"
                               "echo $count >count\necho \"$@\" >words.$count\ncat >config.$count\n"
                               ". ./answer.$count\n");
    fs::permissions(at("curl"), fs::perms::owner_all);
    fetches_.use({"https://r.example:5000/v2/team/x/blobs/", "Bearer t0ken", true, 3});
  }
  void TearDown() override { set_path(path_before_); }

  fs::path at(const std::string& name) const { return folder_.path() / name; }
  static void set_path(const std::string& path) {
    ::setenv("PATH", path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): as above
  }
  /// What the next curl does, in words of sh.
  void answer(const std::string& script) {
    write_file(at("answer." + std::to_string(++answers_)), script + "\n");
  }
  std::string config(int number) { return read_file(at("config." + std::to_string(number))); }
  void hear() {
    std::vector<pollfd> fds;
    fetches_.add_to(fds);
    constexpr int kLongest = 20'000;  // milliseconds
    ASSERT_GT(::poll(fds.data(), fds.size(), kLongest), 0);
    fetches_.hear(fds.data());
  }
  /// How a fetch of those pieces ends.
  RangeEnded fetched(std::uint64_t first, std::uint64_t pieces) {
    ended_.clear();
    whole_.clear();
    got_.clear();
    fetches_.fetch({kFetchedBlob, first, pieces}, kSize);
    while (ended_.empty() && !HasFatalFailure()) hear();
    return ended_.empty() ? RangeEnded{} : ended_.front();
  }

  TemporaryFolder folder_;
  std::string path_before_;
  std::string blob_;
  int answers_ = 0;
  std::map<std::uint64_t, std::string> got_;
  std::vector<std::uint64_t> whole_;
  std::vector<RangeEnded> ended_;
  RegistryFetches fetches_;
};

TEST_F(RegistryFetchesTest, APartComesPieceByPiece) {
  answer(std::string(kPartHead) + "; tail -c +1048577 blob");
  const RangeEnded end = fetched(1, 2);
  EXPECT_EQ(end.how, "") << end.why;
  EXPECT_EQ(end.serial, 3U);
  EXPECT_TRUE(end.gives_ranges);
  EXPECT_EQ(whole_, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(got_[1] + got_[2], blob_.substr(kPieceBytes));
  EXPECT_NE(config(1).find("range = \"1048576-2102151\""), std::string::npos);
  EXPECT_NE(config(1).find("Bearer t0ken"), std::string::npos);
  EXPECT_EQ(trim(read_file(at("words.1"))), "-q --config -");
}

TEST_F(RegistryFetchesTest, OfAWholeBlobThePartIsTaken) {
  answer("printf 'HTTP/1.1 200 OK\\r\\n\\r\\n'; cat blob");
  const RangeEnded end = fetched(1, 1);
  EXPECT_EQ(end.how, "") << end.why;
  EXPECT_FALSE(end.gives_ranges);
  EXPECT_EQ(got_[1], blob_.substr(kPieceBytes, kPieceBytes));
  EXPECT_EQ(got_.size(), 1U);
}

// Who is asked for all of it may leave out that it is a part, and gives parts all the same.
TEST_F(RegistryFetchesTest, AWholeBlobSaysNothingOfParts) {
  answer("printf 'HTTP/1.1 200 OK\\r\\n\\r\\n'; cat blob");
  EXPECT_TRUE(fetched(0, 3).gives_ranges);
  EXPECT_EQ(whole_.size(), 3U);
}

TEST_F(RegistryFetchesTest, WhatAnAnswerMeans) {
  const std::vector<std::pair<const char*, std::string_view>> all = {
      {"401 No", kRangeUnauthorized},
      {"403 No", kRangeRefused},
      {"404 None", kRangeRefused},
      {"416 Range", kRangeRefused},
      {"429 Wait", kRangeBroken},
      {"503 Later", kRangeBroken},
      {"206 Part", kRangeRefused},  // of what?
      {"206 Part\\r\\nContent-Range: bytes 0-9/2102152", kRangeRefused},
      {"206 Part\\r\\nContent-Type: multipart/byteranges", kRangeRefused},
      {"307 There", kRangeRefused},
      {"307 There\\r\\nLocation: http://r.example/open", kRangeRefused},
      {"307 There\\r\\nLocation: file:///etc/passwd", kRangeRefused}};
  for (const auto& [head, how] : all) {
    answer(fmt::format("printf 'HTTP/1.1 {}\\r\\n\\r\\n'; tail -c +1048577 blob", head));
    const RangeEnded end = fetched(1, 2);
    EXPECT_EQ(end.how, how) << head;
    EXPECT_EQ(end.why.find("t0ken"), std::string::npos);
    EXPECT_TRUE(got_.empty()) << "none of it is a layer's";
  }
}

TEST_F(RegistryFetchesTest, ARedirectIsFollowedWithoutTheToken) {
  answer("printf 'HTTP/1.1 307 There\\r\\nLocation: https://s.example/b?sig=s3cret\\r\\n\\r\\n'");
  answer("printf 'HTTP/1.1 302 Back\\r\\nLocation: https://R.example:5000/c\\r\\n\\r\\n'");
  answer(std::string(kPartHead) + "; tail -c +1048577 blob");
  EXPECT_EQ(fetched(1, 2).how, "");
  EXPECT_NE(config(2).find("https://s.example/b?sig=s3cret"), std::string::npos);
  EXPECT_EQ(config(2).find("Authorization"), std::string::npos);
  EXPECT_EQ(config(2).find("insecure"), std::string::npos);
  EXPECT_NE(config(3).find("Bearer t0ken"), std::string::npos) << "it is the registry again";
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(trim(read_file(at("words." + std::to_string(i)))), "-q --config -");
  }
}

TEST_F(RegistryFetchesTest, WhereASignedAddressIsRefusedTheRegistryIsAskedAgain) {
  answer("printf 'HTTP/1.1 307 There\\r\\nLocation: https://s.example/b?sig=s3cret\\r\\n\\r\\n'");
  answer("printf 'HTTP/1.1 403 Late\\r\\n\\r\\n'");
  const RangeEnded end = fetched(1, 2);
  EXPECT_EQ(end.how, kRangeBroken);
  EXPECT_EQ(end.why, "`https://s.example:443/b` answered 403");
}

TEST_F(RegistryFetchesTest, RedirectsEnd) {
  for (int i = 0; i < 6; ++i) {
    answer("printf 'HTTP/1.1 302 On\\r\\nLocation: /again\\r\\n\\r\\n'");
  }
  EXPECT_EQ(fetched(1, 2).how, kRangeRefused);
}

TEST_F(RegistryFetchesTest, WhatBreaksOffLeavesWholePieces) {
  answer(std::string(kPartHead) +
         "; tail -c +1048577 blob | head -c 1050000; "
         "echo 'curl: (18) transfer closed with 1 bytes remaining to read' >&2; exit 18");
  const RangeEnded end = fetched(1, 2);
  EXPECT_EQ(end.how, kRangeBroken);
  EXPECT_EQ(end.why, "transfer closed with 1 bytes remaining to read");
  EXPECT_EQ(whole_, std::vector<std::uint64_t>{1});
  answer(std::string(kPartHead) + "; head -c 9 blob; kill -9 $$");
  EXPECT_EQ(fetched(1, 2).how, kRangeBroken);
  answer("echo 'curl: (60) SSL certificate problem: unable to get local issuer' >&2; exit 60");
  const RangeEnded untrusted = fetched(1, 2);
  EXPECT_EQ(untrusted.how, kRangeRefused);
  EXPECT_EQ(untrusted.why, "SSL certificate problem: unable to get local issuer");
}

TEST_F(RegistryFetchesTest, WithoutCurl) {
  set_path(at("nothing").string());
  const RangeEnded end = fetched(1, 2);
  EXPECT_EQ(end.how, kRangeRefused);
  EXPECT_NE(end.why.find("cannot start `curl`"), std::string::npos);
}

TEST_F(RegistryFetchesTest, NoCurlIsLeftOfWhatIsForgotten) {
  answer(std::string(kPartHead) + "; echo $$ >pid; head -c 100 blob; exec tail -f /dev/null");
  fetches_.fetch({kFetchedBlob, 1, 2}, kSize);
  while (got_.empty() && !HasFatalFailure()) hear();
  const auto curl = static_cast<pid_t>(std::stol(read_file(at("pid"))));
  EXPECT_EQ(::kill(curl, 0), 0);
  fetches_.forget();
  EXPECT_EQ(::kill(curl, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_TRUE(ended_.empty());
}

TEST_F(RegistryFetchesTest, RangesBeyondTheBlob) {
  for (const auto& [first, pieces] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {3, 1}, {1, 3}, {0, 0}, {~std::uint64_t{0}, 2}}) {
    EXPECT_EQ(fetched(first, pieces).how, kRangeRefused);
  }
}

}  // namespace
}  // namespace mlenv::job
