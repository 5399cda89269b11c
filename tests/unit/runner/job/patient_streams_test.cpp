#include "runner/job/patient_streams.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/process.hpp"

namespace mlenv::job {
namespace {

std::string read_some(int fd) {
  std::string buffer(1 << 20, ' ');
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  buffer.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return buffer;
}

/// One turn of the owner's loop.
void turn(PatientStreams& streams) {
  std::vector<pollfd> fds;
  streams.add_to(fds);
  ASSERT_GE(::poll(fds.data(), fds.size(), 0), 0);
  streams.write(fds.data());
}

TEST(PatientStreams, WriteWhatFindsRoomAndKeepTheRest) {
  const Pipe out = make_pipe();
  const Pipe err = make_pipe();
  PatientStreams streams{1U << 24U, {out.write_end.get(), err.write_end.get()}};
  const std::string much(300'000, 'x');  // more than a pipe holds
  streams.add(true, much);
  streams.add(true, "end\n");
  streams.add(false, "apart\n");
  for (int i = 0; i < 10; ++i) turn(streams);  // nobody reads, and nothing waits
  EXPECT_EQ(read_some(err.read_end.get()), "apart\n");
  std::string found;
  while (found.size() < much.size() + 4) {
    found += read_some(out.read_end.get());
    turn(streams);
  }
  EXPECT_EQ(found, much + "end\n");
}

TEST(PatientStreams, TellWhatTheyLeftOut) {
  const Pipe out = make_pipe();
  const Pipe err = make_pipe();
  PatientStreams streams{100'000, {out.write_end.get(), err.write_end.get()}};
  streams.add(true, std::string(99'000, 'x'));
  streams.add(true, std::string(2'000, 'y'));
  std::string found;
  while (found.size() < 99'000) {
    turn(streams);
    found += read_some(out.read_end.get());
  }
  streams.add(true, "after\n");
  turn(streams);
  const std::string rest = read_some(out.read_end.get());
  EXPECT_NE(rest.find("mlenv: 2000 bytes are left out"), std::string::npos) << rest;
  EXPECT_TRUE(rest.ends_with("\nafter\n"));
  EXPECT_EQ(found.find('y'), std::string::npos);
}

TEST(PatientStreams, EndWhereNobodyReads) {
  Pipe out = make_pipe();
  const Pipe err = make_pipe();
  PatientStreams streams{100'000, {out.write_end.get(), err.write_end.get()}};
  streams.add(true, std::string(90'000, 'x'));
  out.read_end.reset();
  turn(streams);
  streams.finish();  // does not wait
  streams.add(true, "more");
  std::vector<pollfd> fds;
  streams.add_to(fds);
  EXPECT_EQ(fds[0].fd, -1);
}

}  // namespace
}  // namespace mlenv::job
