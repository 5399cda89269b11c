#include "runner/record/run_log.hpp"

#include <sys/resource.h>
#include <csignal>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace mlenv {
namespace {

/// What a stream wrote, as the log gives it back.
std::string text_of(LogReader& reader, LogStream stream) {
  std::string text;
  while (const auto line = reader.next()) {
    const auto parsed = parse_log_line(*line);
    EXPECT_TRUE(parsed) << *line;
    if (!parsed || parsed->stream != stream) continue;
    text += parsed->text;
    if (parsed->ends) text += '\n';
  }
  return text;
}

class RunLog : public testing::Test {
 protected:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(RunLog, EveryByteComesBack) {
  const std::string odd{"a\n\nb\rc\0d \xff\nlast", 15};
  LogWriter writer{folder_.path(), 1'000'000};
  writer.write(LogStream::out, odd.substr(0, 4));
  writer.write(LogStream::err, "E\n");
  writer.write(LogStream::out, odd.substr(4));
  const RecordedLog output = writer.finish();
  EXPECT_EQ(output.out.size_bytes, odd.size());
  EXPECT_EQ(output.out.digest, Digest::of(odd).str());
  EXPECT_EQ(output.err.size_bytes, 2U);
  EXPECT_EQ(output.lost_bytes, 0U);
  LogReader reader{folder_.path()};
  EXPECT_EQ(text_of(reader, LogStream::out), odd);
  LogReader again{folder_.path()};
  EXPECT_EQ(text_of(again, LogStream::err), "E\n");
}

TEST_F(RunLog, ARemarkIsNoOutput) {
  LogWriter writer{folder_.path(), 1'000'000};
  writer.write(LogStream::out, "a\n");
  writer.write(LogStream::remark, "restart 1 of 3\n");
  const RecordedLog output = writer.finish();
  EXPECT_EQ(output.out.size_bytes, 2U);
  EXPECT_EQ(output.out.digest, Digest::of("a\n").str());
  EXPECT_EQ(output.err.size_bytes, 0U);
  LogReader reader{folder_.path()};
  EXPECT_EQ(text_of(reader, LogStream::remark), "restart 1 of 3\n");
  EXPECT_EQ(reader.take_dropped(), 0U);
}

TEST_F(RunLog, LinesOfTheFile) {
  const LogLine line{"2026-03-01T12:00:00.250Z", LogStream::err, false, "a b "};
  EXPECT_EQ(render_log_line(line), "2026-03-01T12:00:00.250Z err P a b \n");
  const auto parsed = parse_log_line("2026-03-01T12:00:00.250Z err P a b ");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->text, "a b ");
  EXPECT_FALSE(parsed->ends);
  EXPECT_TRUE(parse_log_line("T out F "));
  for (const char* text : {"", "T", "T out", "T out F", "T in F x", "T out X x"}) {
    EXPECT_FALSE(parse_log_line(text)) << text;
  }
}

TEST_F(RunLog, OldOutputIsDroppedAndToldOf) {
  LogWriter writer{folder_.path(), 100'000};
  LogReader beside{folder_.path()};
  std::string followed;
  for (int i = 0; i < 20'000; ++i) {
    writer.write(LogStream::out, fmt::format("line {}\n", i));
    if (i % 100 == 0) followed += text_of(beside, LogStream::out);
  }
  followed += text_of(beside, LogStream::out);
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += fmt::format("line {}\n", i);
  EXPECT_EQ(followed, all) << "who follows sees all of it";
  EXPECT_EQ(beside.take_dropped(), 0U);
  LogReader late{folder_.path()};
  const std::string kept = text_of(late, LogStream::out);
  EXPECT_TRUE(all.ends_with(kept));
  EXPECT_EQ(late.take_dropped(), all.size() - kept.size());
  std::uint64_t size = 0;
  for (const fs::path& file : list_folder(folder_.path())) size += mlenv::file_size(file);
  EXPECT_LE(size, 100'000U);
  EXPECT_GT(size, 50'000U);
}

TEST_F(RunLog, LinesLongerThanAnyBuffer) {
  const std::string line(3'000'000, 'x');
  LogWriter writer{folder_.path(), 100'000'000};
  writer.write(LogStream::out, line + "\nnext\n");
  LogReader reader{folder_.path()};
  EXPECT_EQ(text_of(reader, LogStream::out), line + "\nnext\n");
}

/// Files may grow to so much, as on a disk that is full.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    (void)std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(RunLog, WhatFindsNoRoomIsCounted) {
  LogWriter writer{folder_.path(), 100'000'000};
  {
    const FileLimit limit{1000};
    for (int i = 0; i < 100; ++i) writer.write(LogStream::out, "0123456789\n");
  }
  writer.write(LogStream::out, "after\n");
  const RecordedLog output = writer.finish();
  EXPECT_EQ(output.out.size_bytes, 1106U);
  LogReader reader{folder_.path()};
  const std::string kept = text_of(reader, LogStream::out);
  EXPECT_TRUE(kept.starts_with("0123456789\n0123456789\n")) << kept;
  EXPECT_TRUE(kept.ends_with("0123456789\nafter\n")) << kept;
  EXPECT_EQ(output.lost_bytes, 1106 - kept.size());
  EXPECT_GT(output.lost_bytes, 500U);
  LogReader remarks{folder_.path()};
  EXPECT_EQ(text_of(remarks, LogStream::remark),
            fmt::format("{} bytes of output found no room on the disk and are lost\n",
                        output.lost_bytes));
}

}  // namespace
}  // namespace mlenv
