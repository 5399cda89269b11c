#include "runner/node/curl_words.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv::job {
namespace {

TEST(CurlWords, ConfigurationSaysWhatIsWantedAndNothingElse) {
  const std::string text =
      render_curl_config({"https://r.example/v2/x/blobs/sha256:1", "Bearer a\"b\\c", false, 5, 9});
  EXPECT_NE(text.find("url = \"https://r.example/v2/x/blobs/sha256:1\"\n"), std::string::npos);
  EXPECT_NE(text.find("header = \"Authorization: Bearer a\\\"b\\\\c\"\n"), std::string::npos);
  EXPECT_NE(text.find("range = \"5-9\"\n"), std::string::npos);
  EXPECT_EQ(text.find("insecure"), std::string::npos);
  EXPECT_EQ(text.find("location"), std::string::npos) << "curl follows no redirect";
  EXPECT_NE(text.find("\nsuppress-connect-headers\n"), std::string::npos)
      << "a proxy may answer CONNECT with no more than 200";
}

TEST(CurlWords, NothingGivenBeginsAnotherOption) {
  const std::string text = render_curl_config(
      {"https://r.example/\noutput = \"/etc/passwd\"", "Bearer x\r\nproxy = y", true, 0, 0});
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) ++lines;
  const std::string plain = render_curl_config({"https://r.example/", "Bearer x", true, 0, 0});
  std::size_t expected = 0;
  for (std::size_t at = 0; (at = plain.find('\n', at)) != std::string::npos; ++at) ++expected;
  EXPECT_EQ(lines, expected);
}

std::optional<AnswerHead> answer_head(std::string_view text, std::string* rest = nullptr) {
  AnswerReader reader;
  std::optional<AnswerHead> head;
  // However it is cut.
  while (!text.empty() && !head) {
    std::string_view one = text.substr(0, 1);
    head = reader.take(one);
    text.remove_prefix(1);
  }
  if (rest != nullptr) *rest = text;
  return head;
}

TEST(CurlWords, HeadsAreTakenFromBodies) {
  std::string rest;
  const auto part = answer_head(
      "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1048576-2097151/5000000\r\n\r\nbody",
      &rest);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->status, 206U);
  EXPECT_EQ(part->from, 1048576U);
  EXPECT_EQ(rest, "body");
  const auto moved = answer_head("HTTP/2 307 \r\nLOCATION:  /elsewhere?a=b \r\n\r\n");
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->status, 307U);
  EXPECT_EQ(moved->location, "/elsewhere?a=b");
}

TEST(CurlWords, ATunnelAndInterimAnswersAreNotTheAnswer) {
  const auto head = answer_head(
      "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 No\r\n"
      "Content-Range: bytes x\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 401U);
  EXPECT_FALSE(head->from);
}

TEST(CurlWords, WhatIsNoAnswer) {
  for (const char* text : {"<html>", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1\r\n\r\n"}) {
    EXPECT_THROW((void)answer_head(text), Error) << text;
  }
  EXPECT_FALSE(answer_head("HTTP/1.1 200 OK\r\n"));
  EXPECT_THROW((void)answer_head("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x')), Error);
}

TEST(CurlWords, WhatMayBeBetterNextTime) {
  for (const unsigned status : {408U, 429U, 500U, 503U}) EXPECT_TRUE(may_come_by_status(status));
  for (const unsigned status : {400U, 403U, 404U, 416U}) EXPECT_FALSE(may_come_by_status(status));
  // No name, no connection, less than was said, no TLS handshake, nothing received, killed.
  for (const int code : {6, 7, 18, 28, 35, 56, 137}) EXPECT_TRUE(may_come_by_exit(code)) << code;
  for (const int code : {2, 3, 60, 77}) EXPECT_FALSE(may_come_by_exit(code)) << code;
}

TEST(CurlWords, Redirects) {
  const std::string from = "https://r.example:5000/v2/x";
  EXPECT_EQ(redirected(from, "https://store.example/b?s=1"), "https://store.example/b?s=1");
  EXPECT_EQ(redirected(from, "/b"), "https://r.example:5000/b");
  EXPECT_EQ(redirected(from, "//s.example/b"), "https://s.example/b");
  EXPECT_EQ(redirected("http://[::1]:5000/x", "/b"), "http://[::1]:5000/b");
  for (const char* wrong :
       {"", "b", "http://store.example/b", "file:///etc/passwd", "https://", "https://a@b/c",
        "https://r.example\\@s.example/", "https://r.example /", "https://r.example:x/"}) {
    EXPECT_FALSE(redirected(from, wrong)) << wrong;
  }
}

TEST(CurlWords, TheLoginsOriginIsSchemeHostAndPort) {
  EXPECT_TRUE(same_origin_url("https://r.example/a", "HTTPS://R.example:443/b"));
  EXPECT_TRUE(same_origin_url("http://[::1]:80/a", "http://[::1]/b"));
  for (const char* other : {"http://r.example/", "https://r.example:444/", "https://s.example/",
                            "https://r.example.s.example/", "https://r.example@s.example/"}) {
    EXPECT_FALSE(same_origin_url("https://r.example/", other)) << other;
  }
  EXPECT_FALSE(same_origin_url("nothing", "nothing"));
  EXPECT_EQ(shown_url("https://s.example/b?signature=x#y"), "https://s.example:443/b");
}

}  // namespace
}  // namespace mlenv::job
