#include "runner/mpi/frames.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv::mpi {
namespace {

TEST(MpiFrames, ComeOutHoweverTheyAreCut) {
  const std::string bytes = render_frame(FrameKind::output, std::string(300, 'x')) +
                            render_frame(FrameKind::input_end, "");
  FrameReader reader;
  std::vector<Frame> frames;
  for (const char c : bytes) {
    reader.take({&c, 1});
    while (const auto frame = reader.next()) frames.push_back(*frame);
  }
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0], (Frame{FrameKind::output, std::string(300, 'x')}));
  EXPECT_EQ(frames[1], (Frame{FrameKind::input_end, ""}));
}

TEST(MpiFrames, OtherBytesAreRefused) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string("O\xff\xff\xff\xff")}) {
    FrameReader reader;
    reader.take(bytes);
    EXPECT_EQ(code_of([&] { (void)reader.next(); }), "bad-stream") << bytes;
  }
}

// RFC 4231, test cases 2 and 6.
TEST(MpiFrames, Hmac) {
  EXPECT_EQ(hmac_of("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hmac_of(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

Frame asked_frame(FrameKind kind, std::string_view payload, std::string_view nonce,
                  std::string_view secret) {
  FrameReader reader;
  reader.take(render_request(kind, payload, nonce, secret));
  return reader.next().value();
}

TEST(MpiFrames, OnlyWhoKnowsTheSecretIsHeard) {
  const Frame frame = asked_frame(FrameKind::command, "orted -x", "n1", "secret");
  EXPECT_EQ(request_in(frame, "n1", "secret"), "orted -x");
  EXPECT_EQ(request_in(frame, "n2", "secret"), std::nullopt);  // said again to another
  EXPECT_EQ(request_in(frame, "n1", "other"), std::nullopt);
  Frame changed = frame;
  changed.payload.back() = 'y';
  EXPECT_EQ(request_in(changed, "n1", "secret"), std::nullopt);
  changed = frame;
  changed.kind = FrameKind::report;
  EXPECT_EQ(request_in(changed, "n1", "secret"), std::nullopt);
  EXPECT_EQ(request_in({FrameKind::command, "short"}, "n1", "secret"), std::nullopt);
}

TEST(MpiFrames, SecretsDiffer) {
  EXPECT_EQ(fresh_secret().size(), 64U);
  EXPECT_NE(fresh_secret(), fresh_secret());
}

TEST(MpiFrames, FailuresOfRanks) {
  EXPECT_EQ(parse_failure(render_failure({3, 139})), (RankFailure{3, 139}));
  for (const char* text : {"", "3", "3 ", "x 1", "3 1 ", "3 256", "3 0", "3 -1", "-1 3"})
    EXPECT_EQ(parse_failure(text), std::nullopt);
  EXPECT_EQ(failure_text({3, 7}), "MPI rank 3 ended with status 7");
  EXPECT_EQ(failure_text({3, 139}), "MPI rank 3 was ended by signal 11 (SIGSEGV)");
}

}  // namespace
}  // namespace mlenv::mpi
