#include "runner/mpi/commands.hpp"

#include <ifaddrs.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <array>
#include <cstring>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/machine.hpp"
#include "runner/mpi/rank.hpp"
#include "runner/mpi/serve.hpp"
#include "runner/mpi/shell_client.hpp"

namespace mlenv::mpi {
namespace {

constexpr int kWrongCommand = 2;
constexpr int kShellFailed = 255;  // as of ssh
constexpr int kOwnFailure = 125;

std::string variable_or_empty(const Environment& env, const char* name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : found->second;
}

/// Empty: of another family.
std::string ip_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof six);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

/// The host that has an address of this node.
Host own_host(const std::vector<Host>& hosts) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw os_error(errno, "cannot read this node's addresses");
  const Owned<::freeifaddrs>::of<ifaddrs> list{first};
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const std::string address = ip_text(one->ifa_addr);
    const auto found = std::find_if(hosts.begin(), hosts.end(),
                                    [&](const Host& host) { return host.address == address; });
    if (found != hosts.end()) return *found;
  }
  throw failure("no-node", "no node of the job has an address of this one");
}

Membership membership() {
  const Environment env = caller_variables();
  const std::string hosts = variable_or_empty(env, kHostsVariable);
  if (hosts.empty()) {
    throw usage_error("usage",
                      "this is of the containers of an MPI job (`mlenv run --strategy "
                      "mpi`)");
  }
  Membership member{parse_hosts(hosts), variable_or_empty(env, kTokenVariable), {}};
  member.own = own_host(member.hosts);
  return member;
}

/// Programs that start others by `ssh` find ours.
void find_our_shell() {
  const std::string path = variable_or_empty(caller_variables(), "PATH");
  const std::string own = std::string(kFolder) + "/bin";
  ::setenv("PATH", path.empty() ? own.c_str() : (own + ":" + path).c_str(), 1);  // NOLINT(*-mt-*)
}

int shell(const std::vector<std::string>& words) {
  const ShellWords parsed = parse_shell_words(words);
  const Membership member = membership();
  const Host* const host = host_called(member.hosts, parsed.host);
  if (host == nullptr) {
    throw usage_error("usage", "`{}` is no node of this job", parsed.host)
        .hint("its nodes are in `" + std::string(kFolder) + "/hostfile`");
  }
  return run_there(*host, parsed, member.secret);
}

int serve_words(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words.front();
  std::vector<std::string> command;
  if (words.size() > 2 && words[1] == "--") command.assign(words.begin() + 2, words.end());
  if (what == "wait" && words.size() == 1) {
    find_our_shell();
    return wait_for_commands(membership());
  }
  if (command.empty() || (what != "launch" && what != "rank")) {
    throw usage_error("usage", "`mlenv-node mpi wait`, `mlenv-node mpi launch -- COMMAND…`");
  }
  if (what == "rank") return run_rank(membership(), command);
  find_our_shell();
  const bool as_it_is = variable_or_empty(caller_variables(), kMpirunVariable) == "no";
  return launch(membership(), command, !as_it_is && !starts_ranks(command.front()));
}

}  // namespace

std::optional<int> mpi_main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  const std::string name = fs::path(words.front()).filename();
  const bool is_shell = name == "ssh" || name == "rsh";
  if (!is_shell && (argc < 2 || words[1] != "mpi")) return std::nullopt;
  try {
    return is_shell ? shell({words.begin() + 1, words.end()})
                    : serve_words({words.begin() + 2, words.end()});
  } catch (const Error& error) {
    std::string text = fmt::format("mlenv: {}\n", error.what());
    if (!error.hint().empty()) text += "what to do: " + error.hint() + "\n";
    (void)write_quietly(STDERR_FILENO, text);
    if (is_shell) return kShellFailed;
    return error.kind() == Kind::usage ? kWrongCommand : kOwnFailure;
  }
}

}  // namespace mlenv::mpi
