#include "runner/job/job_output.hpp"

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

struct Shown {
  std::string out;
  std::string err;
  JobOutput output;
  explicit Shown(JobOutput::Style style = {})
      : output(style,
               [this](bool to_out, std::string_view text) { (to_out ? out : err) += text; }) {}
};

std::string line(std::string_view stream, char ends, std::string_view text) {
  return "2026-03-01T12:00:00.250Z " + std::string(stream) + " " + ends + " " + std::string(text);
}

TEST(JobOutput, HasTheRankBeforeEachLine) {
  Shown shown;
  shown.output.begin(12);
  shown.output.show(3, line("out", 'F', "epoch 1"));
  shown.output.show(11, line("err", 'F', "careful"));
  EXPECT_EQ(shown.out, " 3: epoch 1\n");
  EXPECT_EQ(shown.err, "11: careful\n");
}

TEST(JobOutput, HasNothingBeforeTheLinesOfOneRank) {
  Shown shown;
  shown.output.begin(1);
  shown.output.show(0, line("out", 'P', "50 %\r"));
  EXPECT_EQ(shown.out, "50 %\r");  // at once: there is nobody to mix it with
  shown.output.show(0, line("out", 'F', "100 %"));
  EXPECT_EQ(shown.out, "50 %\r100 %\n");
}

TEST(JobOutput, IsRecordsWithTheAttempt) {
  JobOutput::Style style;
  style.json = true;
  Shown shown{style};
  shown.output.begin(2, 3);
  shown.output.show(1, line("err", 'P', "half"));
  shown.output.show(1, "no line of a log");
  shown.output.flush();
  EXPECT_EQ(shown.err, "");
  EXPECT_EQ(shown.out,
            "{\"attempt\":3,\"complete\":false,\"rank\":1,\"schema\":\"mlenv.log-line/1\","
            "\"stream\":\"stderr\",\"text\":\"half\",\"time\":\"2026-03-01T12:00:00.250Z\"}\n");
}

TEST(JobOutput, DoesNotMixPartsOfLines) {
  Shown shown;
  shown.output.begin(2);
  shown.output.show(0, line("out", 'P', "one "));
  shown.output.show(1, line("out", 'F', "two"));
  shown.output.show(0, line("out", 'F', "three"));
  EXPECT_EQ(shown.out, "1: two\n0: one three\n");
}

TEST(JobOutput, ShowsLinesThatNeverEnd) {
  Shown shown;
  shown.output.begin(2);
  shown.output.show(0, line("out", 'P', "half"));
  shown.output.show(1, line("out", 'P', std::string(20000, 'x')));
  EXPECT_EQ(shown.out, "1: " + std::string(20000, 'x') + "\n");
  shown.output.flush();
  EXPECT_TRUE(shown.out.ends_with("\n0: half\n"));
}

TEST(JobOutput, TellsTimesAndRemarks) {
  Shown shown{{false, true}};
  shown.output.begin(2);
  shown.output.show(1, line("out", 'F', "now"));
  shown.output.show(1, line("mlenv", 'F', "lost"));
  EXPECT_EQ(shown.out, "1: 2026-03-01T12:00:00.250Z now\n");
  EXPECT_NE(shown.err.find("mlenv: "), std::string::npos);
  shown.output.show(1, "no line of a log");
  EXPECT_EQ(shown.out, "1: 2026-03-01T12:00:00.250Z now\n");
}

}  // namespace
}  // namespace mlenv::job
