#include "runner/job/message_rules.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

const std::string kMessageDigest = "sha256:" + std::string(64, 'a');

/// What the other side hears of it: `ok`, or the error's code.
std::string code_heard(const Message& message) {
  MessageReader reader{/*after_marker=*/false};
  reader.take(render_message(message));
  try {
    return reader.next() ? "ok" : "nothing";
  } catch (const Error& error) {
    return error.code();
  }
}

Hello hello_with(const std::function<void(NodeHello&)>& change) {
  NodeHello hello;
  hello.host = "n1";
  hello.version = "1.2.0~rc1+deb12";
  hello.boot_id = "7e0ba3a2-5bd5-4b5e-8a07-0e5a64ce7a58";
  hello.runtime = "/usr/bin/runc";
  hello.clock = "2026-01-02T03:04:05.678Z";
  hello.store = "/home/some one/.local/share/mlenv";
  hello.store_id = "a1b2";
  hello.interfaces = {{"eth0", "10.0.0.3", false}, {"ib0.8001", "fd00::3", false}};
  hello.given_gpus = 8;
  hello.ports = {1, 65535};
  hello.curl = "/usr/bin/curl";
  change(hello);
  return Hello{hello};
}

TEST(MessageRules, AnHonestNodeIsHeard) {
  EXPECT_EQ(code_heard(hello_with([](NodeHello&) {})), "ok");
  EXPECT_EQ(code_heard(Hello{}), "ok");
  EXPECT_EQ(code_heard(hello_with([](NodeHello& one) { one.host = "(none)"; })), "ok");
  EXPECT_EQ(code_heard(Want{"image", {{kMessageDigest, 7}}, {{kMessageDigest, "0101"}}}), "ok");
  EXPECT_EQ(code_heard(RankStarted{0, "20260102-030405-a1b2c3"}), "ok");
  EXPECT_EQ(code_heard(RankEnded{0, 137, 9, true, {}, "{}"}), "ok");
  EXPECT_EQ(code_heard(RankEnded{0, 125, {}, false, RunFailure{"run-failed", "a\nb"}, ""}), "ok");
  EXPECT_EQ(code_heard(RangeEnded{kMessageDigest, 0, 4, std::string(kRangeBroken), "why", 1, true}),
            "ok");
  EXPECT_EQ(code_heard(PieceFailed{"10.0.0.3", 7, kMessageDigest, 3, "two\nlines"}), "ok");
  EXPECT_EQ(code_heard(Failed::of("image", failure("no-space", "a\nb"))), "ok");
  EXPECT_EQ(code_heard(DataAt{{"corpus", kMessageDigest, "found", "/data/corpus", 7, 0, 0.5}}),
            "ok");
}

TEST(MessageRules, WhatANodeSaysOfItselfIsNoMoreThanThat) {
  const std::string line = "10.0.0.3\n6.6.6.6 registry.example.org";
  for (const auto& change : std::vector<std::function<void(NodeHello&)>>{
           [&](NodeHello& one) { one.interfaces[0].address = line; },
           [](NodeHello& one) { one.interfaces[0].address = "n1.example.org"; },
           [](NodeHello& one) { one.interfaces[0].address = "10.0.0.3/24"; },
           [](NodeHello& one) { one.interfaces[0].address = std::string("10.0.0.3\0x", 10); },
           [](NodeHello& one) { one.interfaces[0].address = ""; },
           [](NodeHello& one) { one.interfaces[0].name = "eth0,lo"; },
           [](NodeHello& one) { one.interfaces[0].name = "eth0 lo"; },
           [](NodeHello& one) { one.interfaces[0].name = ""; },
           [](NodeHello& one) { one.interfaces.resize(5000, one.interfaces[0]); },
           [](NodeHello& one) { one.host = std::string(500'000, 'x'); },
           [](NodeHello& one) { one.version = "1.2\nhint: x"; },
           [](NodeHello& one) { one.boot_id = "../../x"; },
           [](NodeHello& one) { one.runtime = "runc; rm"; },
           [](NodeHello& one) { one.store = "/store\nmlenv: x"; },
           [](NodeHello& one) { one.curl = std::string(5000, '/'); },
           [](NodeHello& one) { one.clock = std::string(300, '0'); },
           [](NodeHello& one) { one.given_gpus = std::uint64_t{1} << 40U; },
           [](NodeHello& one) { one.ports = {0}; }}) {
    EXPECT_EQ(code_heard(hello_with(change)), "bad-stream");
  }
}

TEST(MessageRules, NumbersAreOfTheirRange) {
  EXPECT_EQ(code_heard(RankEnded{0, 256, {}, false, {}, ""}), "bad-stream");
  EXPECT_EQ(code_heard(RankEnded{0, 0, 9, false, {}, ""}), "bad-stream");
  EXPECT_EQ(code_heard(RankEnded{0, 137, 10, false, {}, ""}), "bad-stream");
  EXPECT_EQ(code_heard(RankEnded{0, 128 + 65, 65, false, {}, ""}), "bad-stream");
  EXPECT_EQ(code_heard(RankEnded{0, 0, {}, false, RunFailure{"run-failed", "no"}, ""}),
            "bad-stream");
  EXPECT_EQ(code_heard(FreePorts{{1, 0}}), "bad-stream");
  EXPECT_EQ(code_heard(WantData{kMessageDigest, {{UINT64_MAX, 2}}, 0}), "bad-stream");
  // All of a data set many times over, and what was asked for before.
  EXPECT_EQ(code_heard(WantData{kMessageDigest, {{0, 9}, {0, 9}}, 0}), "bad-stream");
  EXPECT_EQ(code_heard(WantData{kMessageDigest, {{5, 2}, {1, 2}}, 0}), "bad-stream");
  EXPECT_EQ(code_heard(WantData{kMessageDigest, {{0, 9}, {9, 1}, {12, 3}}, 0}), "ok");
  EXPECT_EQ(code_heard(RankUsed{0, {-1.0, 0, 1, false, "running", ""}}), "bad-stream");
  EXPECT_EQ(code_heard(DataAt{{"corpus", kMessageDigest, "found", "/d", 0, 0, 1e300}}),
            "bad-stream");
  EXPECT_EQ(code_heard(SignalRank{0, 0}), "bad-stream");
  EXPECT_EQ(code_heard(SignalRank{0, 65}), "bad-stream");
  EXPECT_EQ(code_heard(StopRank{0, UINT64_MAX}), "bad-stream");
  EXPECT_EQ(code_heard(Meet{1, "job", 2, UINT64_MAX, 6000}), "bad-stream");
  EXPECT_EQ(code_heard(BeginBlob{"image", {kMessageDigest, 10}, 11, 0}), "bad-stream");
}

TEST(MessageRules, WordsAreOfTheirGrammar) {
  EXPECT_EQ(code_heard(Want{"image", {{"sha256:../../etc/passwd", 7}}, {}}), "bad-stream");
  EXPECT_EQ(code_heard(Want{"something", {}, {}}), "bad-stream");
  EXPECT_EQ(code_heard(Want{"image", {}, {{kMessageDigest, "01x"}}}), "bad-stream");
  EXPECT_EQ(code_heard(Ready{"image", "sha256:abc"}), "bad-stream");
  EXPECT_EQ(code_heard(Ready{"data", kMessageDigest}), "bad-stream");
  EXPECT_EQ(code_heard(BlobSpoilt{""}), "bad-stream");
  EXPECT_EQ(code_heard(RankStarted{0, "../other"}), "bad-stream");
  EXPECT_EQ(code_heard(RankStarted{0, ".."}), "bad-stream");
  EXPECT_EQ(code_heard(RankLine{0, "one\ntwo"}), "bad-stream");
  EXPECT_EQ(code_heard(RangeEnded{kMessageDigest, 0, 1, "somehow", "", 0, false}), "bad-stream");
  EXPECT_EQ(code_heard(PieceFailed{"n1\n", 1, kMessageDigest, 0, ""}), "bad-stream");
  EXPECT_EQ(code_heard(DataAt{{"corpus", kMessageDigest, "found", "data/corpus", 0, 0, 0}}),
            "bad-stream");
  EXPECT_EQ(code_heard(Failed{"image", 0, "no\nspace", {"x"}, ""}), "bad-stream");
  EXPECT_EQ(code_heard(Failed{"image", 9, "no-space", {"x"}, ""}), "bad-stream");
  EXPECT_EQ(code_heard(Failed{"image", 0, "no-space", std::vector<std::string>(1000, "x"), ""}),
            "bad-stream");
  EXPECT_EQ(code_heard(FetchPiece{"10.0.0.3 ", 1, kMessageDigest, 0}), "bad-stream");
  EXPECT_EQ(code_heard(ServePeers{"token\nGET", "10.0.0.3"}), "bad-stream");
  EXPECT_EQ(
      code_heard(UseRegistry{"https://r.example.org/v2/x/blobs/", "Bearer x\r\nHost: y", false, 1}),
      "bad-stream");
  EXPECT_EQ(code_heard(UseRegistry{"https://r.example.org/v2/x/blobs/\nurl=x", "", false, 1}),
            "bad-stream");
  EXPECT_EQ(code_heard(OfferData{{{"corpus", kMessageDigest, "data", "/data", false}}}),
            "bad-stream");
}

TEST(MessageRules, AddressesAndNames) {
  for (const char* const one : {"10.0.0.3", "fd00::3", "::1"}) EXPECT_TRUE(is_address(one)) << one;
  for (const char* const one : {"", "10.0.0", "010.0.0.3x", "fe80::1%eth0", "10.0.0.3 x"}) {
    EXPECT_FALSE(is_address(one)) << one;
  }
  for (const char* const one : {"n1", "gpu-08.example.org", "node_7"}) {
    EXPECT_TRUE(is_host_name(one)) << one;
  }
  for (const char* const one : {"", "a b", "(none)", "x\ny", "a#b"}) {
    EXPECT_FALSE(is_host_name(one)) << one;
  }
}

TEST(MessageRules, ATextIsOneLineThatSomebodyReads) {
  EXPECT_EQ(shown_text("a\nhint: b"), "a\\nhint: b");
  const std::string shown = shown_text("begin" + std::string(500'000, 'x') + "end");
  EXPECT_LT(shown.size(), 3000U);
  EXPECT_TRUE(shown.starts_with("begin"));
  EXPECT_TRUE(shown.ends_with("end"));
}

}  // namespace
}  // namespace mlenv::job
