#include "base/http.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <ctime>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/http_transfer.hpp"
#include "base/http_url.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/fault_server.hpp"

namespace mlenv {
namespace {

using test::FaultServer;
using test::Reply;
using test::Seen;
using Fault = Reply::Fault;

/// Not repeating over any short distance, so that a wrong offset shows.
std::string body_noise(std::size_t size_bytes) {
  std::string text(size_bytes, '\0');
  std::uint32_t state = 12345;
  for (char& c : text) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  return text;
}

class HttpTest : public testing::Test {
 protected:
  HttpOptions options() {
    HttpOptions options;
    options.pause = [this](std::chrono::milliseconds pause) { pauses.push_back(pause); };
    return options;
  }
  /// Downloads into a file and returns its content.
  std::string fetch(Http& http, const Download& what) {
    TemporaryFolder folder{temporary_root()};
    const Fd file = open_file(folder.path() / "file", O_RDWR | O_CREAT);
    http.download(what, file.get(), [this](std::uint64_t count) { advanced += count; });
    return read_file(folder.path() / "file");
  }
  Download whole(const std::string& body, const std::string& path = "/file") {
    return {server.url(path), Digest::of(body), body.size(), {}};
  }
  static Reply ok(std::string body) {
    Reply reply;
    reply.body = std::move(body);
    return reply;
  }
  static Reply broken(std::string body, Fault fault, std::size_t cut_at, bool ranges = true) {
    Reply reply = ok(std::move(body));
    reply.fault = fault;
    reply.cut_at = cut_at;
    reply.ranges = ranges;
    return reply;
  }
  static Reply challenge() { return status(401, {{"WWW-Authenticate", "Basic realm=\"x\""}}); }
  static std::string noise_line() { return std::string(1000, 'y'); }
  static Reply status(int code, std::vector<std::pair<std::string, std::string>> headers = {}) {
    Reply reply;
    reply.status = code;
    reply.headers = std::move(headers);
    return reply;
  }

  FaultServer server;
  std::vector<std::chrono::milliseconds> pauses;
  std::uint64_t advanced = 0;
};

TEST_F(HttpTest, SendsAndReadsHeaders) {
  Reply reply = ok("hello");
  reply.headers = {{"X-One", " a b "}, {"X-Two", "c"}};
  server.script("/x", {reply});
  Http http{options()};
  HttpRequest request;
  request.url = server.url("/x?q=1");
  request.headers = {{"Accept", "text/plain"}};
  const HttpResponse response = http.send(request);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "hello");
  EXPECT_EQ(response.header("x-one"), "a b");
  EXPECT_EQ(response.header("x-three"), std::nullopt);
  EXPECT_EQ(server.seen()[0].target, "/x?q=1");
  EXPECT_EQ(server.seen()[0].header("accept"), "text/plain");
  EXPECT_EQ(server.seen()[0].header("user-agent"), "mlenv");
}

TEST_F(HttpTest, KeepsConnections) {
  server.script("/x", {ok("hello")});
  Http http{options()};
  for (int i = 0; i < 5; ++i) http.send({.url = server.url("/x")});
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(HttpTest, SendsABodyAgainOnRetry) {
  server.script("/x", {status(503), ok("fine")});
  Http http{options()};
  const std::string text = body_noise(300'000);
  HttpRequest request;
  request.method = "PUT";
  request.url = server.url("/x");
  request.body = [&] { return std::make_unique<MemorySource>(as_bytes(text)); };
  request.body_bytes = text.size();
  EXPECT_EQ(http.send(request).body, "fine");
  const std::vector<Seen> seen = server.seen();
  ASSERT_EQ(seen.size(), 2U);
  for (const Seen& one : seen) EXPECT_EQ(one.body, text);
}

TEST_F(HttpTest, EmptyPostSaysItsLength) {
  server.script("/x", {status(202)});
  Http http{options()};
  HttpRequest request;
  request.method = "POST";
  request.url = server.url("/x");
  http.send(request);
  EXPECT_EQ(server.seen()[0].method, "POST");
  EXPECT_EQ(server.seen()[0].header("content-length"), "0");
}

TEST_F(HttpTest, BodyThatEndsEarlyIsAnErrorNotAHang) {
  server.script("/x", {ok("")});
  Http http{options()};
  HttpRequest request;
  request.method = "PUT";
  request.url = server.url("/x");
  request.body = [&] { return std::make_unique<MemorySource>(as_bytes("short")); };
  request.body_bytes = 100;
  EXPECT_EQ(error_of([&] { http.send(request); }).code(), "truncated");
}

TEST_F(HttpTest, HonoursRetryAfter) {
  server.script("/x", {status(429, {{"Retry-After", "7"}}), status(502), ok("fine")});
  Http http{options()};
  EXPECT_EQ(http.send({.url = server.url("/x")}).status, 200);
  ASSERT_EQ(pauses.size(), 2U);
  EXPECT_EQ(pauses[0], std::chrono::seconds{7});
  EXPECT_GE(pauses[1], std::chrono::milliseconds{500});  // half of the second step
  EXPECT_LE(pauses[1], std::chrono::milliseconds{1000});
}

TEST_F(HttpTest, DoesNotWaitForATooLongRetryAfter) {
  server.script("/x", {status(429, {{"Retry-After", "86400"}})});
  Http http{options()};
  EXPECT_EQ(http.send({.url = server.url("/x")}).status, 429);
  EXPECT_TRUE(pauses.empty());
}

/// As HTTP writes it (RFC 9110 §5.6.7), so many seconds from now.
std::string http_date(std::chrono::seconds from_now) {
  const std::time_t when =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + from_now);
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  std::array<char, 64> text{};
  // The names are English: nothing here sets another locale.
  return {text.data(),
          std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

TEST_F(HttpTest, RetryAfterMayBeADate) {
  server.script("/x", {status(503, {{"Retry-After", http_date(std::chrono::seconds{60})}}),
                       status(503, {{"Retry-After", http_date(std::chrono::seconds{-60})}}),
                       status(429, {{"Retry-After", "soon"}}), ok("fine")});
  Http http{options()};
  EXPECT_EQ(http.send({.url = server.url("/x")}).body, "fine");
  ASSERT_EQ(pauses.size(), 3U);
  EXPECT_GE(pauses[0], std::chrono::seconds{30});
  EXPECT_LE(pauses[0], std::chrono::seconds{61});  // time(2) may lag behind by a tick
  for (const std::size_t usual : {1U, 2U}) EXPECT_LE(pauses[usual], std::chrono::seconds{2});

  server.script("/late", {status(503, {{"Retry-After", http_date(std::chrono::hours{1})}})});
  EXPECT_EQ(http.send({.url = server.url("/late")}).status, 503);
  EXPECT_EQ(server.seen("/late").size(), 1U);
}

TEST_F(HttpTest, DownloadsHonourRetryAfter) {
  const std::string body = body_noise(1000);
  server.script("/file", {status(429, {{"Retry-After", "9"}}), ok(body)});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(pauses, std::vector<std::chrono::milliseconds>{std::chrono::seconds{9}});
}

TEST_F(HttpTest, TriesAreBounded) {
  server.script("/x", {status(500)});
  Http http{options()};
  EXPECT_EQ(http.send({.url = server.url("/x")}).status, 500);
  EXPECT_EQ(server.seen().size(), 5U);
  EXPECT_EQ(http.send({.url = server.url("/x"), .retry = false}).status, 500);
  EXPECT_EQ(server.seen().size(), 6U);
}

TEST_F(HttpTest, OtherStatusesAreAnswersAtOnce) {
  server.script("/x", {status(404)});
  Http http{options()};
  EXPECT_EQ(http.send({.url = server.url("/x")}).status, 404);
  EXPECT_EQ(server.seen().size(), 1U);
}

TEST_F(HttpTest, RefusedConnectionNamesTheHostWithoutSecrets) {
  std::string url;
  {
    const FaultServer gone;
    url = "http://user:secret@" + gone.host() + "/v2/x?token=abc";
  }
  Http http{options()};
  const Error error = error_of([&] { http.send({.url = url}); });
  EXPECT_EQ(error.code(), "network");
  const std::string text = error.what();
  EXPECT_NE(text.find("127.0.0.1"), std::string::npos) << text;
  EXPECT_NE(text.find("after 3 tries"), std::string::npos) << text;
  EXPECT_NE(text.find("refused"), std::string::npos) << text;
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  EXPECT_EQ(text.find("token"), std::string::npos) << text;
}

TEST_F(HttpTest, StalledAnswerIsBroken) {
  server.script("/x", {broken("hello world", Fault::stall, 5)});
  HttpOptions fast = options();
  fast.stall_timeout = std::chrono::milliseconds{300};
  fast.tries = 1;
  Http http{fast};
  const Error error = error_of([&] { http.send({.url = server.url("/x")}); });
  EXPECT_EQ(error.code(), "network");
  EXPECT_NE(std::string(error.what()).find("no byte moved"), std::string::npos) << error.what();
}

TEST_F(HttpTest, AnswerLimit) {
  server.script("/x", {ok(body_noise(5000))});
  Http http{options()};
  EXPECT_EQ(error_of([&] { http.send({.url = server.url("/x"), .answer_limit = 4999}); }).code(),
            "too-large");
  EXPECT_EQ(http.send({.url = server.url("/x"), .answer_limit = 5000}).body.size(), 5000U);
}

TEST_F(HttpTest, RedirectKeepsCredentialsOnlyAtTheSameOrigin) {
  FaultServer other;
  other.script("/there", {ok("moved")});
  server.script("/here", {status(302, {{"Location", "/next?x=1"}})});
  server.script("/next", {status(307, {{"Location", other.url("/there")}})});
  Http http{options()};
  HttpRequest request;
  request.url = server.url("/here");
  request.headers = {{"Authorization", "Bearer t"}, {"Accept", "a/b"}};
  const HttpResponse response = http.send(request);
  EXPECT_EQ(response.body, "moved");
  EXPECT_EQ(response.url, other.url("/there"));
  EXPECT_EQ(server.seen("/next")[0].header("authorization"), "Bearer t");
  EXPECT_EQ(server.seen("/next")[0].target, "/next?x=1");
  EXPECT_EQ(other.seen()[0].header("authorization"), "");
  EXPECT_EQ(other.seen()[0].header("accept"), "a/b");
}

TEST_F(HttpTest, UserInfoOfTheUrlStaysAtItsOrigin) {
  FaultServer other;
  other.script("/there", {ok("moved")});
  server.script("/here", {challenge(), status(302, {{"Location", "/next"}})});
  server.script("/next", {status(302, {{"Location", other.url("/there")}})});
  Http http{options()};
  http.send({.url = "http://user:p%40ss@" + server.host() + "/here"});
  const std::string basic = "Basic dXNlcjpwQHNz";                  // user:p@ss
  EXPECT_EQ(server.seen("/here")[0].header("authorization"), "");  // nobody had asked
  EXPECT_EQ(server.seen("/here")[1].header("authorization"), basic);
  EXPECT_EQ(server.seen("/next")[0].header("authorization"), basic);
  EXPECT_EQ(other.seen()[0].header("authorization"), "");
}

TEST_F(HttpTest, LoginsAreSentOnceAskedFor) {
  server.script("/x", {challenge(), ok("fine")});
  server.script("/y", {ok("fine")});
  Http http{options()};
  const std::string user = "http://user:pw@" + server.host();
  EXPECT_EQ(http.send({.url = user + "/x"}).body, "fine");
  EXPECT_EQ(http.send({.url = user + "/y"}).body, "fine");
  EXPECT_EQ(server.seen("/x").size(), 2U);
  EXPECT_EQ(server.seen("/y").at(0).header("authorization"), "Basic dXNlcjpwdw==");
  EXPECT_EQ(http.send({.url = server.url("/y")}).body, "fine");
  EXPECT_EQ(server.seen("/y").at(1).header("authorization"), "");
}

TEST_F(HttpTest, WhoeverHasLoginsOfItsOwnGetsNone) {
  server.script("/x", {challenge()});
  Http http{options()};
  HttpRequest request;
  request.url = "http://user:pw@" + server.host() + "/x";
  request.machine_login = false;
  EXPECT_EQ(http.send(request).status, 401);
  EXPECT_EQ(server.seen().size(), 1U);
}

TEST_F(HttpTest, NetrcIsNotForPlainHttp) {
  TemporaryFolder folder{temporary_root()};
  write_file(folder.path() / "netrc",
             "machine 127.0.0.1 login a password INTRANETPW\ndefault login b password SECRET\n");
  FaultServer other;
  other.script("/there", {challenge()});
  server.script("/here", {challenge()});
  server.script("/moved", {status(302, {{"Location", other.url("/there")}})});
  HttpOptions with = options();
  with.netrc = folder.path() / "netrc";
  Http http{with};
  const HttpResponse refused = http.send({.url = server.url("/here")});
  EXPECT_EQ(refused.status, 401);
  EXPECT_NE(refused.no_login.find("plain HTTP"), std::string::npos) << refused.no_login;
  EXPECT_EQ(http.send({.url = server.url("/moved")}).status, 401);
  const Error error = error_of([&] { fetch(http, whole("x", "/here")); });
  EXPECT_EQ(error.code(), "http-status");
  EXPECT_NE(std::string(error.what()).find("plain HTTP"), std::string::npos) << error.what();
  for (const Seen& one : server.seen()) EXPECT_EQ(one.header("authorization"), "");
  for (const Seen& one : other.seen()) EXPECT_EQ(one.header("authorization"), "");
}

TEST_F(HttpTest, ABodyThatDripsIsBroken) {
  const std::string body = body_noise(100'000);
  server.script("/file", {broken(body, Fault::drip, 1000)});
  HttpOptions fast = options();
  fast.stall_timeout = std::chrono::milliseconds{300};
  Http http{fast};
  const Error error = error_of([&] { fetch(http, whole(body)); });
  EXPECT_EQ(error.code(), "network");
  EXPECT_NE(std::string(error.what()).find("fewer than 1000 bytes"), std::string::npos)
      << error.what();
  EXPECT_NE(std::string(error.what()).find("after 2 tries"), std::string::npos) << error.what();
}

TEST_F(HttpTest, AnAnswerThatIsKeptHasADeadline) {
  server.script("/x", {broken(body_noise(100'000), Fault::drip, 1000)});
  HttpOptions fast = options();
  fast.stall_timeout = std::chrono::milliseconds{300};
  fast.least_rate = 1;  // slow is fine
  fast.answer_rate = 1'000'000;
  fast.tries = 1;
  Http http{fast};
  const Error error =
      error_of([&] { http.send({.url = server.url("/x"), .answer_limit = 200'000}); });
  EXPECT_EQ(error.code(), "network");
  EXPECT_NE(std::string(error.what()).find("not whole within"), std::string::npos) << error.what();
}

TEST_F(HttpTest, HeadsHaveALimit) {
  Reply large = ok("x");
  for (int i = 0; i < 300; ++i) large.headers.emplace_back(fmt::format("X-{}", i), noise_line());
  server.script("/x", {large});
  Http http{options()};
  EXPECT_EQ(error_of([&] { http.send({.url = server.url("/x")}); }).code(), "too-large");
  EXPECT_EQ(server.seen().size(), 1U);
}

TEST_F(HttpTest, WhatIsToldToBeTooLongIsNotRead) {
  // The server would say no more than the first bytes: whoever waited for the rest would wait.
  server.script("/x", {broken(body_noise(5000), Fault::stall, 0)});
  server.script("/file", {broken(body_noise(5000), Fault::stall, 1)});
  Http http{options()};
  EXPECT_EQ(error_of([&] { http.send({.url = server.url("/x"), .answer_limit = 4999}); }).code(),
            "too-large");
  EXPECT_EQ(error_of([&] { fetch(http, whole("short")); }).code(), "digest-mismatch");
}

TEST_F(HttpTest, OfARefusalTheBeginningIsRead) {
  Reply refused = broken(body_noise(200'000), Fault::stall, 100'000);
  refused.status = 400;
  server.script("/x", {refused});
  Http http{options()};
  const HttpResponse response = http.send({.url = server.url("/x")});
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body, body_noise(200'000).substr(0, 64U << 10U));
}

TEST_F(HttpTest, RedirectLoopEnds) {
  server.script("/x", {status(302, {{"Location", "/x"}})});
  Http http{options()};
  EXPECT_EQ(error_of([&] { http.send({.url = server.url("/x")}); }).code(), "network");
  EXPECT_EQ(http.send({.url = server.url("/x"), .follow_redirects = false}).status, 302);
}

TEST_F(HttpTest, RedirectToAnotherSchemeIsRefused) {
  server.script("/x", {status(302, {{"Location", "file:///etc/passwd"}})});
  Http http{options()};
  EXPECT_EQ(error_of([&] { http.send({.url = server.url("/x")}); }).code(), "network");
}

TEST_F(HttpTest, Downloads) {
  const std::string body = body_noise(3'000'000);
  server.script("/file", {ok(body)});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(advanced, body.size());
}

TEST_F(HttpTest, DownloadContinuesAfterBreaks) {
  const std::string body = body_noise(3'000'000);
  Reply rest = ok(body);
  rest.ranges = true;
  server.script("/file",
                {broken(body, Fault::close, 1'000'000), broken(body, Fault::close, 500'000), rest});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(advanced, body.size());
  const std::vector<Seen> seen = server.seen();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[1].header("range"), "bytes=1000000-");
  EXPECT_EQ(seen[2].header("range"), "bytes=1500000-");
}

TEST_F(HttpTest, DownloadContinuesAfterAReset) {
  const std::string body = body_noise(400'000);
  Reply rest = ok(body);
  rest.ranges = true;
  server.script("/file", {broken(body, Fault::reset, 100'000), rest});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(server.seen().size(), 2U);
}

TEST_F(HttpTest, DownloadWithoutDigestContinuesOnlyUnderAValidator) {
  const std::string body = body_noise(200'000);
  Reply first = broken(body, Fault::close, 50'000);
  first.headers = {{"ETag", "\"v1\""}};
  Reply rest = ok(body);
  rest.ranges = true;
  server.script("/tagged", {first, rest});
  server.script("/bare", {broken(body, Fault::close, 50'000), rest});
  Http http{options()};
  EXPECT_EQ(fetch(http, {server.url("/tagged"), {}, {}, {}}), body);
  EXPECT_EQ(server.seen("/tagged")[1].header("if-range"), "\"v1\"");
  EXPECT_EQ(fetch(http, {server.url("/bare"), {}, {}, {}}), body);
  EXPECT_EQ(server.seen("/bare")[1].header("range"), "");
}

TEST_F(HttpTest, ServerWithoutRangesMeansANewStart) {
  const std::string body = body_noise(400'000);
  server.script("/file", {broken(body, Fault::close, 300'000, false), ok(body)});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(advanced, body.size());  // none counted twice
}

TEST_F(HttpTest, EarlyEndThatTheServerHidesIsContinued) {
  const std::string body = body_noise(400'000);
  Reply cut = broken(body, Fault::close, 100'000);
  cut.says_length = false;
  Reply rest = ok(body);
  rest.ranges = true;
  server.script("/file", {cut, rest});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(server.seen()[1].header("range"), "bytes=100000-");
}

TEST_F(HttpTest, WrongBytesAreTriedOnceMoreFromTheStart) {
  const std::string body = body_noise(10'000);
  std::string wrong = body;
  wrong[5000] = static_cast<char>(wrong[5000] + 1);
  server.script("/file", {ok(wrong), ok(body)});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(server.seen()[1].header("cache-control"), "no-cache");
  EXPECT_EQ(server.seen()[1].header("range"), "");

  server.script("/file", {ok(wrong)});
  const Error error = error_of([&] { fetch(http, whole(body)); });
  EXPECT_EQ(error.code(), "digest-mismatch");
  const std::string text = error.what();
  EXPECT_NE(text.find(Digest::of(body).str()), std::string::npos) << text;
  EXPECT_NE(text.find(Digest::of(wrong).str()), std::string::npos) << text;
  EXPECT_EQ(server.seen().size(), 4U);
}

TEST_F(HttpTest, WrongBytesBeforeABreakCostOneRestart) {
  const std::string body = body_noise(10'000);
  std::string wrong = body;
  wrong[100] = static_cast<char>(wrong[100] + 1);
  Reply rest = ok(body);
  rest.ranges = true;
  server.script("/file", {broken(wrong, Fault::close, 5000), rest});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
  EXPECT_EQ(server.seen().size(), 3U);
}

TEST_F(HttpTest, LongerThanPromisedStopsAtOnce) {
  const std::string body = body_noise(10'000);
  server.script("/file", {ok(body_noise(2'000'000))});
  Http http{options()};
  const Error error = error_of([&] { fetch(http, whole(body)); });
  EXPECT_EQ(error.code(), "digest-mismatch");
  EXPECT_NE(std::string(error.what()).find("longer"), std::string::npos) << error.what();
  EXPECT_LE(advanced, body.size());
}

TEST_F(HttpTest, ShorterThanPromised) {
  const std::string body = body_noise(10'000);
  Reply reply = ok(body.substr(0, 9000));
  reply.ranges = true;
  server.script("/file", {reply});
  Http http{options()};
  const Error error = error_of([&] { fetch(http, whole(body)); });
  EXPECT_EQ(error.code(), "digest-mismatch");
  EXPECT_NE(std::string(error.what()).find("needs 10000 bytes, found 9000"), std::string::npos)
      << error.what();
}

TEST_F(HttpTest, WrongRangeIsNotTrusted) {
  const std::string body = body_noise(10'000);
  Reply lying = status(206, {{"Content-Range", "bytes 0-9999/10000"}});
  lying.body = body;
  server.script("/file", {broken(body, Fault::close, 5000), lying, ok(body)});
  Http http{options()};
  EXPECT_EQ(fetch(http, whole(body)), body);
}

TEST_F(HttpTest, EndlessBreaksEnd) {
  const std::string body = body_noise(100'000);
  server.script("/file", {broken(body, Fault::close, 1000, false)});
  Http http{options()};
  EXPECT_EQ(error_of([&] { fetch(http, whole(body)); }).code(), "network");
  EXPECT_EQ(server.seen().size(), 5U);
}

TEST_F(HttpTest, FinalStatusOfADownload) {
  Reply reply = status(404, {{"Content-Type", "text/plain"}});
  reply.body = "no such wheel\nmore";
  server.script("/file", {reply});
  Http http{options()};
  const Error error = error_of([&] { fetch(http, whole("x")); });
  EXPECT_EQ(error.code(), "http-status");
  EXPECT_EQ(std::string(error.what()),
            "`" + server.url("/file") + "` answered 404 Not Found: no such wheel");
}

TEST_F(HttpTest, StreamsAndRetriesOnlyBeforeTheFirstByte) {
  const std::string body = body_noise(100'000);
  server.script("/file", {status(503), ok(body)});
  Http http{options()};
  StringSink sink;
  http.stream({.url = server.url("/file")}, sink);
  EXPECT_EQ(sink.text, body);

  server.script("/cut", {broken(body, Fault::close, 1000)});
  StringSink part;
  EXPECT_EQ(error_of([&] { http.stream({.url = server.url("/cut")}, part); }).code(), "network");
  EXPECT_EQ(part.text, body.substr(0, 1000));
}

TEST_F(HttpTest, WhatTheSinkThrowsComesOut) {
  server.script("/file", {ok(body_noise(100'000))});
  Http http{options()};
  FunctionSink sink{[](ByteView) { throw failure("full", "no room"); }};
  EXPECT_EQ(error_of([&] { http.stream({.url = server.url("/file")}, sink); }).code(), "full");
}

TEST_F(HttpTest, ManyThreadsAtOnce) {
  const std::string body = body_noise(500'000);
  server.script("/file", {ok(body)});
  Http http{options()};
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      StringSink sink;
      http.stream({.url = server.url("/file")}, sink);
      if (sink.text == body) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST(HttpUrl, Display) {
  EXPECT_EQ(display_url("https://user:secret@host:8443/path?token=1#f"), "https://host:8443/path");
  EXPECT_EQ(display_url("https://host/a@b"), "https://host/a@b");
  EXPECT_EQ(display_url("https://a@b@host"), "https://host");
  EXPECT_EQ(display_url("nonsense"), "nonsense");
}

TEST(HttpUrl, WhatIsNone) {
  for (const char* wrong : {"nonsense", "ftp://host/x", "http://"}) {
    EXPECT_EQ(code_of([&] { http::parse_url(wrong); }), "bad-url") << wrong;
  }
}

TEST(HttpUrl, Encode) {
  EXPECT_EQ(url_path_encode("pool/main/g/g++ 1~2_é"), "pool/main/g/g%2B%2B%201~2_%C3%A9");
  EXPECT_EQ(url_query_encode("a/b:c&d=e"), "a%2Fb%3Ac%26d%3De");
}

TEST(HttpUrl, Resolve) {
  const http::Url base = http::parse_url("https://u:p@host:5000/v2/a/?x=1");
  EXPECT_EQ(base.text, "https://host:5000/v2/a/?x=1");
  EXPECT_EQ(http::resolve_url(base, "/v2/b?_state=a%3D&z").text,
            "https://host:5000/v2/b?_state=a%3D&z");
  EXPECT_EQ(http::resolve_url(base, "c").text, "https://host:5000/v2/a/c");
  EXPECT_EQ(http::resolve_url(base, "c").user, "u");
  EXPECT_EQ(http::resolve_url(base, "https://elsewhere/x").user, "");
  EXPECT_THROW(http::parse_url("ftp://host/"), Error);
  EXPECT_THROW(http::parse_url("host/path"), Error);
}

// A redirect keeps credentials where this holds.
TEST(HttpUrl, OriginIsSchemeHostAndPort) {
  const http::Url base = http::parse_url("https://host.org/v2/");
  for (const char* same : {"https://host.org/", "https://HOST.org:443/x?y#z"}) {
    EXPECT_TRUE(http::same_origin(base, http::parse_url(same))) << same;
  }
  for (const char* other : {"http://host.org/", "http://host.org:443/", "https://host.org:8443/",
                            "https://cdn.host.org/", "https://host.org.evil.example/",
                            "https://host.org@evil.example/"}) {
    EXPECT_FALSE(http::same_origin(base, http::parse_url(other))) << other;
  }
  EXPECT_EQ(http::resolve_url(http::parse_url("https://u:p@host.org/"), "http://host.org/").user,
            "");
  EXPECT_EQ(http::resolve_url(http::parse_url("https://u:p@host.org/"), "//host.org:444/").user,
            "");
}

TEST(HttpUrl, Loopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"}) {
    EXPECT_TRUE(http::is_loopback(host)) << host;
  }
  for (const char* host : {"127.0.0.1.example.org", "10.0.0.1", "localhost.example.org", "::2"}) {
    EXPECT_FALSE(http::is_loopback(host)) << host;
  }
}

}  // namespace
}  // namespace mlenv
