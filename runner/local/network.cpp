#include "runner/local/network.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kNetworkStart{20};
/// Of the container, as slirp4netns has it.
constexpr const char* kSlirpGuest = "10.0.2.100";
/// Where a name server of the host's loopback is asked: link-local, which no network routes.
constexpr const char* kNameServer = "169.254.53.53";
constexpr const char* kSlirpNameServer = "10.0.2.3";

Error unusable_port(const PublishedPort& port, int error) {
  if (error == EADDRINUSE) {
    return failure("port-taken", "the port {} of this machine is taken ({})", port.on_host(),
                   port.protocol)
        .hint(fmt::format("choose another: `-p {}:{}`", port.host + 1, port.container));
  }
  Error problem = failure("no-port", "cannot listen on {} ({})", port.on_host(), port.protocol)
                      .because(errno_text(error));
  if (error == EACCES) {
    problem.hint(
        "only root may take this port: choose one from 1024 on, or let root run `sysctl -w "
        "net.ipv4.ip_unprivileged_port_start=80`");
  } else if (error == EADDRNOTAVAIL) {
    problem.hint("name an address of this machine, or 0.0.0.0 for all of them");
  }
  return problem;
}

void check_port(const PublishedPort& port) {
  const bool is_udp = port.protocol == "udp";
  const Fd fd{::socket(AF_INET, (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0)};
  if (!fd) throw os_error(errno, "cannot make a socket");
  const int on = 1;  // a connection that lingers from a run before is no listener
  if (!is_udp) (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.host));
  ::inet_pton(AF_INET, port.address.c_str(), &address.sin_addr);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: bind(2)'s way
  if (::bind(fd.get(), plain, sizeof address) != 0) throw unusable_port(port, errno);
}

/// The part of its words that says what went wrong.
std::string last_helper_line(std::string_view text) {
  std::string last;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view word = trim(line);
    // It has no system log here, which is none of anybody's business.
    if (!word.empty() && word.find("to syslog") == std::string_view::npos) last = word;
  }
  return last;
}

Error no_container_network(std::string_view program, std::string why) {
  return failure("no-network", "`{}` could not set up the container's network", program)
      .because(why.empty() ? "it does not say why" : std::move(why));
}

template <class Work>
int answer_of(const PidNamespace& processes, int pipe, Work&& work) noexcept {
  const auto answer = [&](const std::string& bytes) { (void)write_quietly(pipe, bytes); };
  try {
    if (::setns(processes.fd(), CLONE_NEWPID) != 0) {
      throw os_error(errno, "cannot enter a PID namespace");
    }
    std::forward<Work>(work)();
    answer(render_outcome(Exit{}));
  } catch (const Error& error) {
    answer(render_outcome(error));
  }
  return 0;
}

/// Does `work` in a copy of this process whose own children begin in `processes`: an ordinary user
/// could go in there, but not come back. What those leave running stays. Throws what it throws.
template <class Work>
void work_in(const PidNamespace& processes, Work&& work) {
  Pipe answer = make_pipe();
  const pid_t pid = ::fork();
  if (pid < 0) throw os_error(errno, "cannot start a process");
  if (pid == 0) ::_exit(answer_of(processes, answer.write_end.get(), std::forward<Work>(work)));
  answer.write_end.reset();
  FdSource source{answer.read_end.get()};
  const std::string outcome = read_all(source, std::uint64_t{1} << 20U);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (outcome.empty()) {
    throw no_container_network("mlenv", "the process for it ended without an answer");
  }
  (void)parse_outcome(outcome);
}

/// Both programs make the container's end with it.
void require_tun() {
  constexpr const char* kTun = "/dev/net/tun";
  if (::access(kTun, R_OK | W_OK) == 0) return;
  const int error = errno;
  throw failure("no-network", "a private network needs `{}`, which cannot be opened", kTun)
      .because(errno_text(error))
      .hint(error == ENOENT
                ? "let root load it: `modprobe tun`; in a container: start that one with "
                  "the device"
                : "let root run `chmod 666 /dev/net/tun`, as distributions have it; or use "
                  "the host's network");
}

/// A line each way over its socket.
std::string ask_slirp(const fs::path& socket, const nlohmann::json& question) {
  const Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: connect(2)'s
  if (!fd || ::connect(fd.get(), plain, sizeof address) != 0) {
    throw no_container_network("slirp4netns", errno_text(errno));
  }
  const std::string text = question.dump();
  (void)::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  ::shutdown(fd.get(), SHUT_WR);
  FdSource source{fd.get()};
  return read_all(source, std::uint64_t{1} << 16U);
}

/// `{"error": {"desc": TEXT}}`, as it answers.
std::string refusal_in(const nlohmann::json& said) {
  if (!said.is_object()) return "it gives no answer";
  const nlohmann::json error = said.value("error", nlohmann::json::object());
  const bool has_text = error.is_object() && error.value("desc", nlohmann::json()).is_string();
  return printable(has_text ? error.at("desc").get<std::string>() : said.dump());
}

void publish(const fs::path& socket, const PublishedPort& port) {
  const std::string answer = ask_slirp(socket, {{"execute", "add_hostfwd"},
                                                {"arguments",
                                                 {{"proto", port.protocol},
                                                  {"host_addr", port.address},
                                                  {"host_port", port.host},
                                                  {"guest_addr", kSlirpGuest},
                                                  {"guest_port", port.container}}}});
  const nlohmann::json said = nlohmann::json::parse(answer, nullptr, false);
  if (said.is_object() && said.contains("return")) return;
  // It does not say why it cannot listen there. Whether anybody could is seen at once.
  check_port(port);
  throw no_container_network(
      "slirp4netns", fmt::format("it does not pass on {} ({}): {}", port.on_host(), port.protocol,
                                 refusal_in(said)));
}

void wait_ready(int fd) {
  pollfd ready{fd, POLLIN, 0};
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(kNetworkStart);
  char byte = 0;
  if (::poll(&ready, 1, static_cast<int>(most.count())) != 1 || ::read(fd, &byte, 1) != 1) {
    throw no_container_network("slirp4netns", "it ended or did not answer; its words are above");
  }
}

/// It goes into the background when all is there. It would pass on ports of its own accord, both
/// ways, and show the host's own services at the gateway's address: none of that.
void start_pasta(const fs::path& program, const fs::path& name_space,
                 const std::vector<PublishedPort>& ports, Identity identity) {
  Command command{Purpose{"network"}};
  command.argv = {program.string(), "--quiet", "--config-net", "--no-map-gw", "--dns-forward",
                  kNameServer,      "-T",      "none",         "-U",          "none"};
  for (const char* const protocol : {"tcp", "udp"}) {
    const char* const option = std::string_view(protocol) == "tcp" ? "-t" : "-u";
    bool any = false;
    for (const PublishedPort& port : ports) {
      if (port.protocol != protocol) continue;
      any = true;
      command.argv.insert(command.argv.end(), {option, fmt::format("{}/{}:{}", port.address,
                                                                   port.host, port.container)});
    }
    if (!any) command.argv.insert(command.argv.end(), {option, "none"});
  }
  // As real root it would become `nobody`, who may not enter the namespace.
  if (identity == Identity::root) command.argv.insert(command.argv.end(), {"--runas", "0"});
  command.argv.insert(command.argv.end(), {"--netns", name_space.string()});
  const Captured result = run_captured(command, kNetworkStart);
  if (result.exit.code != 0) throw no_container_network("pasta", last_helper_line(result.err));
}

/// It stays when the process that started it ends.
void start_slirp(const fs::path& program, const fs::path& name_space, const fs::path& folder,
                 const std::vector<PublishedPort>& ports) {
  constexpr int kReady = 3;
  const fs::path socket = "slirp";  // relative: a socket's path is short (unix(7))
  if (::chdir(folder.c_str()) != 0) throw os_error(errno, "cannot enter `{}`", folder.string());
  Pipe ready = make_pipe();
  const Fd messages = open_file(folder / "slirp.log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Command command{Purpose{"network"}};
  command.argv = {
      program.string(),       "--configure",       "--mtu=65520",   "--disable-host-loopback",
      "--netns-type=path",    "--api-socket",      socket.string(), "--ready-fd",
      std::to_string(kReady), name_space.string(), "tap0"};
  command.extra_fds = {{ready.write_end.get(), kReady}};
  command.stdout_fd = messages.get();
  command.stderr_fd = messages.get();
  auto slirp = std::make_unique<Child>(command);
  ready.write_end.reset();
  try {
    wait_ready(ready.read_end.get());
    for (const PublishedPort& port : ports) publish(socket, port);
    (void)slirp.release();  // it is the namespace's end that ends it
  } catch (Error& error) {
    const std::string words =
        last_helper_line(read_file_if_exists(folder / "slirp.log").value_or(""));
    if (!words.empty()) error.because(words);
    throw;
  }
}

}  // namespace

void check_ports(const std::vector<PublishedPort>& ports) {
  for (const PublishedPort& port : ports) check_port(port);
}

NetworkProgram find_network_program() {
  if (const auto pasta = find_program("pasta")) return {*pasta, true};
  if (const auto slirp = find_program("slirp4netns")) return {*slirp, false};
  throw failure("no-network", "a private network needs a program that is not installed")
      .because("neither `pasta` nor `slirp4netns` is on PATH")
      .hint("let root run `apt-get install passt` (or slirp4netns), or use the host's network");
}

PrivateNetwork::PrivateNetwork(const NetworkProgram& program, const fs::path& name_space,
                               const fs::path& folder, const std::vector<PublishedPort>& ports,
                               Identity identity) {
  require_tun();
  processes_.settle();
  work_in(processes_, [&] {
    if (program.is_pasta) {
      start_pasta(program.path, name_space, ports, identity);
    } else {
      start_slirp(program.path, name_space, folder, ports);
    }
  });
}

std::string private_resolver(std::string_view host, bool by_pasta) {
  const std::string through =
      fmt::format("nameserver {}\n", by_pasta ? kNameServer : kSlirpNameServer);
  std::string result;
  bool served = false;
  for (const std::string_view line : split(trim(host), '\n')) {
    const bool is_server = line.starts_with("nameserver");
    const std::string_view address = is_server ? trim(line.substr(10)) : std::string_view{};
    const bool is_loopback = address.starts_with("127.") || address == "::1";
    if (!is_loopback) {
      result.append(line).push_back('\n');
    } else if (!served) {
      result += through;
    }
    served = served || is_server;
  }
  return served ? result : result + through;
}

}  // namespace mlenv
