// What nodes give each other, over real sockets.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>

#include "images/partial_blob.hpp"
#include "runner/node/peer_fetches.hpp"
#include "runner/node/peer_server.hpp"

namespace mlenv::job {
namespace {

/// As long as a digest is.
const std::string kHere = "sha256:" + std::string(64, 'a');

class StringSource final : public Source {
 public:
  explicit StringSource(std::string text) : text_(std::move(text)), rest_(as_bytes(text_)) {}
  std::size_t read(ByteSpan out) override { return rest_.read(out); }

 private:
  std::string text_;
  MemorySource rest_;
};

class PeersTest : public ::testing::Test {
 protected:
  PeersTest()
      : server_([this](const PieceRequest& request) { return found(request); }),
        fetches_({[this](const FetchPiece& piece, std::uint64_t offset, std::string_view bytes) {
                    EXPECT_EQ(offset, piece.piece * kPieceBytes + got_[piece.piece].size());
                    got_[piece.piece] += bytes;
                  },
                  [this](const FetchPiece& piece) { whole_.push_back(piece.piece); },
                  [this](const FetchPiece& piece, const std::string& why) {
                    failed_.push_back(std::to_string(piece.piece) + ": " + why);
                  }}) {
    content_.resize(5 * kPieceBytes + 123);
    for (std::size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 31 / 7);
    port_ = server_.open("token", "127.0.0.1");
  }
  std::unique_ptr<Source> found(const PieceRequest& request) const {
    if (request.digest != kHere) return nullptr;
    return std::make_unique<StringSource>(content_.substr(request.offset, request.length));
  }
  FetchPiece piece(std::uint64_t number, const std::string& digest = kHere) const {
    return {"127.0.0.1", port_, digest, number};
  }
  std::uint64_t length(std::uint64_t number) const {
    return std::min(kPieceBytes, content_.size() - number * kPieceBytes);
  }
  bool until(const std::function<bool()>& condition) {
    constexpr std::chrono::seconds kMost{30};
    const auto end = std::chrono::steady_clock::now() + kMost;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::vector<pollfd> fds;
      server_.add_to(fds);
      fetches_.add_to(fds);
      (void)::poll(fds.data(), fds.size(), 20);
      (void)fetches_.hear(server_.hear(fds.data()));
      fetches_.tick();
    }
    return true;
  }

  std::string content_;
  std::uint16_t port_ = 0;
  PeerServer server_;
  PeerFetches fetches_;
  std::map<std::uint64_t, std::string> got_;
  std::vector<std::uint64_t> whole_;
  std::vector<std::string> failed_;
};

TEST_F(PeersTest, PiecesComeWhole) {
  ASSERT_NE(port_, 0);
  fetches_.set_token("token");
  for (const std::uint64_t number : {5U, 0U, 3U, 1U}) fetches_.fetch(piece(number), length(number));
  ASSERT_TRUE(until([&] { return whole_.size() == 4; }));
  EXPECT_EQ(whole_, (std::vector<std::uint64_t>{5, 0, 3, 1}));
  for (const auto& one : got_) {
    EXPECT_EQ(one.second, content_.substr(one.first * kPieceBytes, kPieceBytes)) << one.first;
  }
  EXPECT_TRUE(failed_.empty());
}

TEST_F(PeersTest, AStrangerGetsNothing) {
  fetches_.set_token("other");
  fetches_.fetch(piece(0), length(0));
  ASSERT_TRUE(until([&] { return !failed_.empty(); }));
  EXPECT_TRUE(got_.empty());
}

TEST_F(PeersTest, WhatIsNotThereIsSaid) {
  fetches_.set_token("token");
  fetches_.fetch(piece(0, "sha256:elsewhere"), length(0));
  ASSERT_TRUE(until([&] { return !failed_.empty(); }));
  EXPECT_EQ(failed_[0], "0: it answers `NO it is not there`");
}

TEST_F(PeersTest, NobodyAtThatPort) {
  std::uint16_t port = 0;
  { const Fd gone = listen_at("127.0.0.1", port); }
  fetches_.fetch({"127.0.0.1", port, kHere, 0}, length(0));
  fetches_.fetch({"no-address", 1, kHere, 1}, length(1));
  ASSERT_TRUE(until([&] { return failed_.size() == 2; }));
}

TEST_F(PeersTest, WhoGivesAByteNowAndThenIsGivenUp) {
  std::uint16_t port = 0;
  const Fd listening = listen_at("127.0.0.1", port);
  PeerFetches impatient{
      {[](const FetchPiece&, std::uint64_t, std::string_view) {}, [](const FetchPiece&) {},
       [this](const FetchPiece&, const std::string& why) { failed_.push_back(why); }},
      std::chrono::milliseconds{200}};
  impatient.fetch({"127.0.0.1", port, kHere, 0}, length(0));
  Fd slow;
  ASSERT_TRUE(until([&] {
    if (!slow) {
      slow = Fd{::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
      if (slow) (void)write_quietly(slow.get(), "OK\n");
    }
    if (slow) (void)write_quietly(slow.get(), "x");
    std::vector<pollfd> fds;
    impatient.add_to(fds);
    (void)::poll(fds.data(), fds.size(), 0);
    (void)impatient.hear(fds.data());
    impatient.tick();
    return !failed_.empty();
  }));
  EXPECT_EQ(failed_[0], "it gives too little");
}

TEST(PeerWords, LinesAreReadAsTheyAreWritten) {
  const PieceRequest request{"sha256:12", 5, 7};
  std::string line = render_request_line(request);
  line.pop_back();
  const auto read = parse_request_line(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->digest, request.digest);
  EXPECT_EQ(read->offset, 5U);
  EXPECT_EQ(read->length, 7U);
  for (const char* wrong : {"", "GET", "GET a", "GET a 1", "GET a 1 ", "GET a 1 2 3", "PUT a 1 2",
                            "GET a -1 2", "GET a 99999999999999999999 1"}) {
    EXPECT_FALSE(parse_request_line(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace mlenv::job
