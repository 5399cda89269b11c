#include "runner/launch/local_nodes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/sandbox/plan.hpp"
#include "runner/launch/links.hpp"
#include "runner/launch/local_words.hpp"
#include "runner/launch/started_child.hpp"
#include "runner/local/namespaces.hpp"

namespace mlenv::job {
namespace {

constexpr std::chrono::seconds kMostMaking{20};
/// An agent kills its ranks, unmounts and removes folders.
constexpr std::chrono::seconds kMostAgentLeaving{22};
/// A bridge has 1023 ports.
constexpr std::size_t kMostNodesPlayed = 1000;

void write_own_map(const char* path, const std::string& text) {
  const Fd fd = open_file(path, O_WRONLY);
  write_all(fd.get(), as_bytes(text));
}

/// Into namespaces of their own of users, in which there is nobody but the caller, with the id that
/// they have, and of networks. True when there is one of users.
bool enter_new_network() {
  if (::geteuid() == 0 && ::unshare(CLONE_NEWNET) == 0) return false;
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  unshare_user_and_mounts();
  write_own_map("/proc/self/setgroups", "deny");
  write_own_map("/proc/self/uid_map", uid + " " + uid + " 1");
  write_own_map("/proc/self/gid_map", gid + " " + gid + " 1");
  if (::unshare(CLONE_NEWNET) != 0) {
    throw failure("no-node", "cannot make a network for nodes on this machine")
        .because("network namespace: " + errno_text(errno));
  }
  return true;
}

/// The process that makes the network: says what it made, and stays until somebody holds it.
int make_network() {
  std::string answer;
  try {
    answer = enter_new_network() ? "users" : "network";
    Links links;
    links.add_bridge("nodes", kBridge);
    links.switch_on(Links::kLoopback);
  } catch (const Error& error) {
    answer = "error" + sandbox::encode(error);
  }
  write_all(STDOUT_FILENO, as_bytes(answer));
  ::close(STDOUT_FILENO);
  std::array<char, 1> byte{};
  while (::read(STDIN_FILENO, byte.data(), 1) < 0 && errno == EINTR) {
  }
  return 0;
}

/// The same beyond the numbers that a new process gets them at: those are taken one by one.
Fd numbered_high(const Fd& fd) {
  constexpr int kFirstFree = 16;
  Fd copy{::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstFree)};
  if (!copy) throw os_error(errno, "cannot copy a descriptor");
  return copy;
}

std::string text_to_end(int fd) {
  std::string text;
  FdSource source{fd};
  std::array<std::byte, 4096> buffer{};
  while (const std::size_t count = source.read(buffer)) {
    text.append(reinterpret_cast<const char*>(buffer.data()), count);  // NOLINT: bytes as text
  }
  return text;
}

/// The namespaces live as long as somebody has them open: no process is needed.
struct Network {
  Fd name_space;
  Fd users;  ///< none where the caller is root
};

Network new_network() {
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Command command{Purpose{"node-network"}};
  command.argv = {own_executable().string(), std::string(kNetworkArgument)};
  command.stdin_fd = in.read_end.get();
  command.stdout_fd = out.write_end.get();
  Child maker{command};
  in.read_end.reset();
  out.write_end.reset();
  const std::string answer = text_to_end(out.read_end.get());
  constexpr std::string_view kError = "error";
  if (answer.starts_with(kError)) throw sandbox::decode_error(answer.substr(kError.size()));
  if (answer.empty()) throw failure("no-node", "the process that makes the nodes' network died");
  const std::string folder = fmt::format("/proc/{}/ns/", maker.pid());
  Network network;
  network.name_space = numbered_high(open_file(folder + "net"));
  if (answer == "users") network.users = numbered_high(open_file(folder + "user"));
  in.write_end.reset();
  (void)maker.wait(kMostMaking);
  return network;
}

/// The agent of a node, and what keeps the node alive.
class StartedLocal final : public StartedNode {
 public:
  StartedLocal(const Command& command, Fd lifeline)
      : lifeline_(std::move(lifeline)), child_(command, kMostAgentLeaving) {}
  NodeStream take_stream() override { return child_.take_stream(); }
  std::string last_words() override { return child_.last_words(); }
  bool gone() override { return child_.gone(); }
  /// The node's first process gives the agent time, and ends what is left (local_node.cpp).
  void let_go() override {
    lifeline_.reset();
    child_.let_go();
  }

 private:
  Fd lifeline_;
  StartedChild child_;
};

class LocalNodes final : public NodeStarter {
 public:
  explicit LocalNodes(LocalSettings settings)
      : settings_(std::move(settings)),
        range_(free_range(read_file_if_exists("/proc/net/route").value_or(""))),
        network_(new_network()) {
    if (settings_.agent.empty()) {
      settings_.agent = {own_executable().string(), "__node", settings_.store.string()};
    }
  }

  std::vector<NodeOffer> offers() const override {
    std::vector<NodeOffer> offers;
    for (std::size_t node = 0; node < settings_.nodes; ++node) {
      offers.push_back({name_of(node), shown(range_.of(node)), "eth0"});
    }
    return offers;
  }
  std::unique_ptr<StartedNode> start(const NodeOffer& node) override;
  bool may_come_back() const override { return true; }

 private:
  LocalSettings settings_;
  AddressRange range_;
  Network network_;
  std::size_t starts_ = 0;
};

std::unique_ptr<StartedNode> LocalNodes::start(const NodeOffer& node) {
  LocalNode which;
  which.count = settings_.nodes;
  which.range = range_;
  which.start = starts_++;
  which.own_users = static_cast<bool>(network_.users);
  which.agent = settings_.agent;
  while (which.index < which.count && name_of(which.index) != node.name) ++which.index;
  if (which.index == which.count) throw failure("no-node", "there is no node `{}`", node.name);
  Pipe lifeline = make_pipe();
  lifeline.read_end = numbered_high(lifeline.read_end);
  Command command{Purpose{"local-node"}};
  command.argv = {own_executable().string(), std::string(kNodeArgument)};
  for (std::string& word : render(which)) command.argv.push_back(std::move(word));
  command.extra_fds = {{network_.name_space.get(), kNetworkFd},
                       {lifeline.read_end.get(), kLifelineFd}};
  if (network_.users) command.extra_fds.emplace_back(network_.users.get(), kUserFd);
  return std::make_unique<StartedLocal>(command, std::move(lifeline.write_end));
}

}  // namespace

std::unique_ptr<NodeStarter> local_nodes(const LocalSettings& settings) {
  if (settings.nodes > kMostNodesPlayed) {
    throw failure("no-node", "this machine plays {} nodes at most, not {}", kMostNodesPlayed,
                  settings.nodes);
  }
  return std::make_unique<LocalNodes>(settings);
}

std::optional<int> local_node_main(int argc, char** argv) {
  if (argc < 2) return std::nullopt;
  try {
    if (argv[1] == kNetworkArgument) return make_network();
    if (argv[1] == kNodeArgument) return run_local_node(parse_local_node({argv + 2, argv + argc}));
  } catch (const Error& error) {
    (void)write_quietly(STDERR_FILENO, std::string(error.what()) + "\n");
    return 1;
  }
  return std::nullopt;
}

}  // namespace mlenv::job
