#include "runner/launch/ssh_nodes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "runner/launch/node_program.hpp"
#include "runner/launch/ssh_words.hpp"
#include "runner/launch/started_child.hpp"

namespace mlenv::job {
namespace {

/// ssh ends when the agent has; one that waits for a host that is gone need not be waited for.
constexpr std::chrono::milliseconds kMostSshLeaving{5000};

class StartedSsh final : public StartedNode {
 public:
  StartedSsh(NodeProgram::Carried carried, Host host)
      : host_(std::move(host)),
        child_(std::move(carried.command), kMostSshLeaving, std::move(carried.program)) {}
  NodeStream take_stream() override { return child_.take_stream(); }
  ProgramSent program_sent() override { return child_.program_sent(); }
  std::string last_words() override { return explained_ssh(child_.last_words(), host_); }
  bool gone() override { return child_.gone(); }
  void let_go() override { child_.let_go(); }

 private:
  Host host_;
  StartedChild child_;
};

class SshNodes final : public NodeStarter {
 public:
  SshNodes(fs::path ssh, SshSettings settings)
      : ssh_(std::move(ssh)), hosts_(std::move(settings.hosts)), program_(settings.program) {}

  std::vector<NodeOffer> offers() const override {
    std::vector<NodeOffer> offers;
    for (const Host& host : hosts_) offers.push_back({host.name, host.address, "", host.slots});
    return offers;
  }

  std::unique_ptr<StartedNode> start(const NodeOffer& node) override {
    const auto named = [&node](const Host& host) { return host.name == node.name; };
    const auto host = std::find_if(hosts_.begin(), hosts_.end(), named);
    if (host == hosts_.end()) throw failure("no-node", "there is no node `{}`", node.name);
    return std::make_unique<StartedSsh>(
        program_.carried_by(ssh_words(ssh_.string(), *host), /*any_shell=*/true), *host);
  }

  bool may_come_back() const override { return true; }

 private:
  fs::path ssh_;
  std::vector<Host> hosts_;
  NodeProgram program_;
};

}  // namespace

std::unique_ptr<NodeStarter> ssh_nodes(SshSettings settings) {
  const std::optional<fs::path> ssh = find_program("ssh");
  if (!ssh) {
    throw failure("no-node", "there is no `ssh` here to reach nodes by")
        .hint("install openssh-client");
  }
  return std::make_unique<SshNodes>(*ssh, std::move(settings));
}

}  // namespace mlenv::job
