#include "recipes/resolve/wheel_sizes.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"
#include "tests/support/fault_server.hpp"

namespace mlenv {
namespace {

using test::reply;

class WheelSizes : public testing::Test {
 protected:
  std::uint64_t asked() {
    std::vector<SizeQuestion> questions(1);
    questions[0].url = server.url("/x.whl");
    questions[0].file = "x.whl";
    Http http;
    QuietProgress none;
    ask_sizes(questions, http, none);
    return questions[0].size_bytes;
  }
  void answer(const std::function<test::Reply(const test::Seen&)>& how) { server.otherwise(how); }
  test::FaultServer server;
  std::string file = std::string(10'000, 'x');
};

TEST_F(WheelSizes, AreToldByTheHeadOrByARange) {
  answer([&](const test::Seen&) { return reply(200, file); });
  EXPECT_EQ(asked(), 10'000U);
  answer([&](const test::Seen& seen) {
    if (seen.method == "HEAD") return reply(405);
    test::Reply part = reply(206, "x");
    part.headers = {{"Content-Range", "bytes 0-0/10000"}};
    return part;
  });
  EXPECT_EQ(asked(), 10'000U);
}

TEST_F(WheelSizes, ServerThatSendsTheWholeFileTellsNone) {
  answer([&](const test::Seen& seen) {
    return seen.method == "HEAD" ? reply(405) : reply(200, file);
  });
  EXPECT_EQ(code_of([&] { asked(); }), "no-size");
}

}  // namespace
}  // namespace mlenv
