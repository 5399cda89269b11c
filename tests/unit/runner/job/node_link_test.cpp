#include "runner/job/node_link.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/job/messages.hpp"

namespace mlenv::job {
namespace {

TEST(NodeLink, WhatANodeSaysStaysOnItsLine) {
  const std::string forged = "gone\n\x1b[31merror: fake";
  const std::string shown = "gone\\n\\x1b[31merror: fake";
  Pipe to = make_pipe();
  Pipe from = make_pipe();
  Hello hello;
  hello.hello.host = forged;
  const RankEnded ended{3, 125, {}, false, RunFailure{"run-failed", forged}, "{}", forged};
  const Failed failed = Failed::of("image", failure("no-space", "{}", forged).hint(forged));
  std::string bytes = stream_marker();
  for (const Message& one : std::vector<Message>{hello, ended, failed, Leaving{forged}}) {
    bytes += render_message(one);
  }
  write_all(from.write_end.get(), as_bytes(bytes));
  from.write_end.reset();

  std::vector<std::string> heard;
  NodeEvents events;
  events.met = [&](const NodeHello& node) { heard.push_back(node.host); };
  events.ended = [&](std::uint64_t /*rank*/, const RankEnd& end) {
    heard.push_back(end.failure->message);
    heard.push_back(end.ended_by_node);
  };
  events.failed = [&](const std::string& /*during*/, const Error& error) {
    heard.push_back(error.frames().front());
    heard.push_back(error.hint());
  };
  events.lost = [&](const std::string& why) { heard.push_back(why); };
  NodeLink link{{std::move(to.write_end), std::move(from.read_end)}, {}, std::move(events)};
  link.take();
  link.take();
  EXPECT_EQ(heard, std::vector<std::string>(6, shown));
}

}  // namespace
}  // namespace mlenv::job
