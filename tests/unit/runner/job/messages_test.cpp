#include "runner/job/messages.hpp"

#include <gtest/gtest.h>

#include "base/printable.hpp"
#include "runner/job/record_scan.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

/// What comes out at the other end, however the bytes are cut.
std::vector<Message> read_in_pieces(const std::string& bytes, std::size_t piece, bool marker) {
  MessageReader reader{marker};
  std::vector<Message> read;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.take(std::string_view(bytes).substr(at, piece));
    while (std::optional<Message> one = reader.next()) read.push_back(*std::move(one));
  }
  return read;
}

StartRank start() { return {3, "{\"a\":1}", std::string("\0\xff\n", 3), true, 77, {}}; }

TEST(NodeMessages, ComeOutAsTheyWentIn) {
  NodeHello hello;
  hello.host = "n1";
  hello.interfaces = {{"eth0", "10.0.0.3", false}};
  hello.ports = {1, 65535};
  const Failed failed = Failed::of("image", failure("no-space", "full").because("why").hint("do"));
  std::string bytes;
  for (const Message& one : std::vector<Message>{
           Meet{1, "job", 2, 1000, 6000}, start(), BlobBytes{std::string("\0a", 2)},
           RankLine{1ULL << 40U, "\xff line"}, Hello{hello}, failed,
           RankEnded{1, 139, 11, true, RunFailure{"run-failed", "why"}, "{}"}, Beat{}}) {
    bytes += render_message(one);
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    const std::vector<Message> read = read_in_pieces(bytes, piece, false);
    ASSERT_EQ(read.size(), 8U);
    EXPECT_EQ(std::get<Meet>(read[0]).silence_ms, 6000U);
    EXPECT_EQ(std::get<StartRank>(read[1]).run, start().run);
    EXPECT_TRUE(std::get<StartRank>(read[1]).code_as_project);
    EXPECT_EQ(std::get<BlobBytes>(read[2]).bytes, std::string("\0a", 2));
    EXPECT_EQ(std::get<RankLine>(read[3]).rank, 1ULL << 40U);
    EXPECT_EQ(std::get<RankLine>(read[3]).line, "\xff line");
    EXPECT_EQ(std::get<Hello>(read[4]).hello.interfaces.at(0).address, "10.0.0.3");
    EXPECT_EQ(std::get<Hello>(read[4]).hello.ports, hello.ports);
    const Error error = std::get<Failed>(read[5]).error();
    EXPECT_EQ(error.code(), "no-space");
    EXPECT_EQ(error.frames(), (std::vector<std::string>{"full", "why"}));
    EXPECT_EQ(error.hint(), "do");
    EXPECT_EQ(std::get<RankEnded>(read[6]).failure->message, "why");
    EXPECT_EQ(std::get<RankEnded>(read[6]).signal, 11U);
    EXPECT_TRUE(std::holds_alternative<Beat>(read[7]));
  }
}

TEST(NodeMessages, WhatALoginShellPrintsBeforeIsSkipped) {
  const std::string bytes = "Welcome!\nMLENV-NODE\n" + stream_marker() + render_message(Beat{});
  for (const std::size_t piece : {std::size_t{1}, bytes.size()}) {
    EXPECT_EQ(read_in_pieces(bytes, piece, true).size(), 1U);
  }
}

TEST(NodeMessages, OtherBytesAreShown) {
  MessageReader reader{true};
  reader.take("bash: line 1: mlenv-node: command not found\n");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.begun());
  EXPECT_EQ(reader.noise(), "bash: line 1: mlenv-node: command not found");
  reader.take(std::string(70000, 'x'));
  EXPECT_EQ(code_of([&] { (void)reader.next(); }), "bad-stream");
}

TEST(NodeMessages, AnotherVersionIsRefused) {
  MessageReader reader{true};
  reader.take("MLENV-NODE-STREAM/2\n");
  EXPECT_EQ(code_of([&] { (void)reader.next(); }), "node-version");
}

TEST(NodeMessages, NeitherAreBytesThatAreNone) {
  const auto code = [](const std::string& bytes) {
    MessageReader reader{false};
    reader.take(bytes);
    return code_of([&] { (void)reader.next(); });
  };
  EXPECT_EQ(code("help\n"), "bad-stream");                     // a length beyond all
  EXPECT_EQ(code(std::string(4, '\0')), "bad-stream");         // none
  EXPECT_EQ(code(std::string("\1\0\0\0?", 5)), "bad-stream");  // of no kind
  EXPECT_EQ(code(std::string("\2\0\0\0R\xff", 6)), "bad-stream");
  EXPECT_EQ(code(std::string("\5\0\0\0L1234", 9)), "bad-stream");
  // Things in things, for which the reader would call itself: lists, maps, strings in pieces, tags.
  for (const char* const one : {"\x81", "\xa1", "\x9f", "\xbf", "\x7f", "\x5f", "\xc0"}) {
    const std::string small = std::string("\x41\x42\x0f\0R", 5) + std::string(1000000, *one);
    EXPECT_EQ(code(small), "bad-stream") << printable(one);
    std::string large("\x01\x2d\x31\x01M", 5);
    large.resize(large.size() + 20'000'000, *one);
    EXPECT_EQ(code(large), "bad-stream") << printable(one);
  }
  // More than one of its kind may have, before it is all there.
  EXPECT_EQ(code(std::string("\1\0\x10\1R", 5)), "bad-stream");
  EXPECT_EQ(code(std::string("\1\0\x10\1L", 5)), "bad-stream");
  EXPECT_EQ(code(std::string("\1\0\0\3M", 5)), "bad-stream");
}

TEST(NodeMessages, OnlyWhatHasLargePartsMayBeLarge) {
  const std::string much(3 << 20, 'x');
  const std::string ended = render_message(RankEnded{1, 0, {}, false, {}, much});
  EXPECT_EQ(std::get<RankEnded>(read_in_pieces(ended, ended.size(), false).at(0)).record, much);
  EXPECT_EQ(code_of([&] { (void)render_message(Leaving{much}); }), "bad-stream");
  std::string leaving = ended;
  leaving.replace(leaving.find("ended"), 5, "hello");
  EXPECT_EQ(code_of([&] { (void)read_in_pieces(leaving, leaving.size(), false); }), "bad-stream");
}

TEST(NodeMessages, ARecordIsOfOneItemWithAllItsLengths) {
  EXPECT_TRUE(is_plain_record("\xa1\x61x\x82\x01\xf6"));
  EXPECT_TRUE(is_plain_record(std::string(16, '\x81') + "\x01"));
  EXPECT_FALSE(is_plain_record(std::string(17, '\x81') + "\x01"));
  EXPECT_FALSE(is_plain_record("\x01\x01"));
  EXPECT_FALSE(is_plain_record("\x63xy"));
  EXPECT_FALSE(is_plain_record("\xbb\x80\xff\xff\xff\xff\xff\xff\xff\x01"));
  EXPECT_FALSE(is_plain_record(""));
  // A list of many nothings.
  EXPECT_FALSE(is_plain_record(std::string("\x9a\0\3\0\0", 5) + std::string(196608, '\xf6')));
}

}  // namespace
}  // namespace mlenv::job
