// One node that this machine plays. Two processes around the agent:
//
//   stage   in the machine's namespaces; ends as the node does
//   init    the node's first process: makes its network and mounts, starts the agent, reaps, and
//           ends with it; the kernel kills all that is left then (pid_namespaces(7))
//
// SIGKILL to init is a power cut.
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "runner/launch/links.hpp"
#include "runner/launch/local_words.hpp"

namespace mlenv::job {
namespace {

constexpr const char* kNodeDevice = "eth0";

Error no_node(const LocalNode& node, std::string_view what, int error) {
  return failure("no-node", "cannot make `{}` on this machine", name_of(node.index))
      .because(std::string(what) + ": " + errno_text(error));
}

/// The same at every start of this node: what its peers remember of it stays right.
std::array<std::uint8_t, 6> hardware_address(std::size_t node) {
  return {0x02,
          0x6d,
          0x6c,
          0x65,
          static_cast<std::uint8_t>(node / 256),
          static_cast<std::uint8_t>(node % 256)};
}

void join_network(const LocalNode& node, Links& fabric) {
  const Fd own = open_file("/proc/self/ns/net");
  fabric.add_cable("n" + std::to_string(node.start), kBridge,
                   {kNodeDevice, hardware_address(node.index)}, own.get());
  Links links;
  links.switch_on(Links::kLoopback);
  const int device = static_cast<int>(::if_nametoindex(kNodeDevice));
  links.add_address(device, node.range.of(node.index), AddressRange::kPrefix);
  links.switch_on(device);
}

void mount_or_throw(const LocalNode& node, const char* type, const char* target) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount(type, target, type, kFlags, nullptr) != 0) {
    throw no_node(node, fmt::format("mounting `{}`", target), errno);
  }
}

/// A mount that is attached nowhere yet: of what lies at `path`.
Fd copy_of_mount(const char* path) {
  return Fd{::open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE)};
}

void attach(const Fd& mount, const char* path) {
  if (mount) ::move_mount(mount.get(), "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

/// /proc of the node's processes, and the names of all nodes in /etc/hosts: a file of a file system
/// in memory that is nowhere else to be seen.
void mount_proc_and_hosts(const LocalNode& node) {
  mount_or_throw(node, "tmpfs", "/proc");
  write_file("/proc/hosts", hosts_file(node.count, node.range), false);
  const Fd hosts = copy_of_mount("/proc/hosts");
  ::umount2("/proc", MNT_DETACH);
  mount_or_throw(node, "proc", "/proc");
  attach(hosts, "/etc/hosts");
}

/// /sys shows the devices of the network namespace in which it was mounted. Where the kernel allows
/// no new one, what the machine shows stays: a program that looks there sees its devices.
void mount_sys() {
  const Fd groups = copy_of_mount("/sys/fs/cgroup");
  if (!groups) return;
  if (::mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) return;
  attach(groups, "/sys/fs/cgroup");
}

void set_up(const LocalNode& node, Links& fabric) {
  const std::string name = name_of(node.index);
  if (::sethostname(name.data(), name.size()) != 0) throw no_node(node, "host name", errno);
  join_network(node, fabric);
  // What the machine mounts from now on is seen here; not the other way round.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    throw no_node(node, "mount", errno);
  }
  mount_proc_and_hosts(node);
  mount_sys();
}

/// Reaps whatever has ended; the agent's status when it is among those.
std::optional<int> reap_all(pid_t agent) {
  int status = 0;
  pid_t ended = 0;
  std::optional<int> answer;
  while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (ended == agent) {
      answer = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
  return answer;
}

/// Until the agent ends. When the controller is gone it has as long as it takes to put things away.
int watch_over(pid_t agent, const Fd& children) {
  constexpr int kMostLeaving = 20000;  // milliseconds
  bool leaving = false;
  while (true) {
    std::array<pollfd, 2> fds{pollfd{children.get(), POLLIN, 0},
                              pollfd{leaving ? -1 : kLifelineFd, 0, 0}};
    const int ready = ::poll(fds.data(), fds.size(), leaving ? kMostLeaving : -1);
    if (ready == 0) return 128 + SIGKILL;
    if (fds[0].revents != 0) {
      signalfd_siginfo happened{};
      (void)!::read(children.get(), &happened, sizeof happened);
      if (const std::optional<int> status = reap_all(agent)) return *status;
    }
    leaving = leaving || fds[1].revents != 0;
  }
}

/// What runs on behind an agent that has ended (the record of a rank is completed with facts of the
/// node) has a moment: with the node it would be killed, and leave its temporary files behind.
void reap_others(const Fd& children) {
  constexpr std::chrono::seconds kMost{10};  // they step back where a machine is busy
  const auto until = std::chrono::steady_clock::now() + kMost;
  while (::waitpid(-1, nullptr, WNOHANG) >= 0) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= left.zero()) return;
    pollfd fd{children.get(), POLLIN, 0};
    const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    (void)::poll(&fd, 1, static_cast<int>(left_ms));
    signalfd_siginfo happened{};
    if (fd.revents != 0) (void)!::read(children.get(), &happened, sizeof happened);
  }
}

/// The agent is a child of the node's first process: what it leaves behind is reaped.
int run_agent(const LocalNode& node) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &ended, nullptr);
  const Fd children{::signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK)};
  Command command{Purpose{"local-agent"}};
  command.argv = node.agent;
  command.stdin_fd = 0;
  Child agent{command};
  // The streams are the agent's alone: their end is its end.
  const Fd null = open_file("/dev/null", O_RDWR);
  ::dup2(null.get(), 0);
  ::dup2(null.get(), 1);
  const int status = watch_over(agent.pid(), children);
  if (status < kSignalBase) reap_others(children);
  ::_exit(status);
}

[[noreturn]] void be_node(const LocalNode& node, Links& fabric) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, ("mlenv-" + name_of(node.index)).c_str());
  try {
    set_up(node, fabric);
    ::_exit(run_agent(node));
  } catch (const Error& error) {
    (void)write_quietly(STDERR_FILENO, std::string(error.what()) + "\n");
  }
  ::_exit(1);
}

}  // namespace

int run_local_node(const LocalNode& node) {
  ::fcntl(kNetworkFd, F_SETFD, FD_CLOEXEC);
  ::fcntl(kLifelineFd, F_SETFD, FD_CLOEXEC);
  if (node.own_users && ::setns(kUserFd, CLONE_NEWUSER) != 0) {
    throw no_node(node, "user namespace", errno);
  }
  ::close(kUserFd);
  if (::setns(kNetworkFd, CLONE_NEWNET) != 0) throw no_node(node, "network namespace", errno);
  Links fabric;
  constexpr unsigned long kNew =
      CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC;
  const long pid = ::syscall(SYS_clone, kNew | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid < 0) throw no_node(node, "clone", errno);
  if (pid == 0) be_node(node, fabric);
  // The streams and the lifeline are the node's.
  ::close(kNetworkFd);
  const Fd null = open_file("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2, kLifelineFd}) ::dup2(null.get(), fd);
  int status = 0;
  while (::waitpid(static_cast<pid_t>(pid), &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace mlenv::job
