#pragma once
// A controller for tests: real agents, each a process of this test program, and their links.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "runner/job/node_link.hpp"

namespace mlenv::test {

/// What one node has said so far.
struct Heard {
  std::optional<job::NodeHello> hello;
  std::string image;  ///< digests
  std::string code;
  std::vector<job::DataPlace> data;
  std::optional<Facts> facts;
  std::vector<std::uint16_t> ports;
  std::map<std::uint64_t, std::string> started;  ///< run ids by rank
  std::map<std::uint64_t, std::string> output;   ///< texts of the lines
  std::uint64_t lines = 0;
  std::map<std::uint64_t, job::RankEnd> ended;
  std::vector<std::string> failed;  ///< `during: code: text`
  std::optional<std::string> lost;
  std::uint64_t sent = 0;
};

class TestNode {
 public:
  /// `program` empty: this test program itself.
  explicit TestNode(const fs::path& store, const job::LinkSettings& settings = {},
                    std::vector<std::string> program = {});

  job::NodeLink& link() { return *link_; }
  const Heard& heard() const { return heard_; }
  /// Answers that have come, for whoever takes them away.
  std::vector<std::string>& heard_link_tests() { return link_tests_; }
  pid_t pid() const { return child_->pid(); }
  /// Lets the link live until the condition holds or a deadline (true: it holds).
  bool until(const std::function<bool()>& condition,
             std::chrono::milliseconds deadline = std::chrono::seconds{60});
  /// How the agent ended, once its link is closed or it was killed.
  std::optional<Exit> end() { return child_->wait(std::chrono::seconds{30}); }
  void kill() { child_->signal(SIGKILL); }
  void drop_link() { link_.reset(); }

 private:
  job::NodeEvents events();

  Heard heard_;
  std::vector<std::string> link_tests_;
  std::optional<Child> child_;
  std::unique_ptr<job::NodeLink> link_;
};

}  // namespace mlenv::test
