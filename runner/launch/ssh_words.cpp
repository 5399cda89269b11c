#include "runner/launch/ssh_words.hpp"

#include <fmt/format.h>

namespace mlenv::job {
namespace {

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// For ssh-keyscan and `ssh` as a person types them.
std::string words_for_port(const Host& host) {
  return host.port == 0 ? "" : fmt::format("-p {} ", host.port);
}

std::string ssh_advice(const std::string& said, const Host& host) {
  if (mentions(said, "REMOTE HOST IDENTIFICATION HAS CHANGED")) {
    return fmt::format(
        "`{0}` shows another host key than the one that is known here: was it installed anew? Ask "
        "who runs it before you take the old one away (`ssh-keygen -R {0}`) and pin the new one",
        host.name);
  }
  if (mentions(said, "Host key verification failed")) {
    return fmt::format(
        "the host key of `{0}` is not known here: look at it (`ssh-keyscan {1}{0} | ssh-keygen -lf "
        "-`), compare it with what who runs it says, and pin it (`ssh-keyscan {1}{0} "
        ">>~/.ssh/known_hosts`)",
        host.name, words_for_port(host));
  }
  if (mentions(said, "Permission denied (")) {
    return fmt::format(
        "nothing is asked for at a terminal: `ssh -o BatchMode=yes {}{} true` must work (a key in "
        "its authorized_keys; `ssh-add` for a key with a passphrase)",
        words_for_port(host), host.name);
  }
  if (mentions(said, "Could not resolve hostname")) {
    return "no such name is known: is it misspelt, or is its entry in ~/.ssh/config missing?";
  }
  if (mentions(said, "onnection refused")) return "it is there, and no sshd answers at that port";
  if (mentions(said, "onnection timed out") || mentions(said, "No route to host") ||
      mentions(said, "Network is unreachable")) {
    return "it is switched off, or no way leads there from here";
  }
  return {};
}

}  // namespace

std::vector<std::string> ssh_words(const std::string& program, const Host& host) {
  std::vector<std::string> words = {program, "-T", "-a", "-x", "-e", "none"};
  // A connection that broke is noticed as fast as a node that is silent (LinkSettings::silence).
  for (const char* option :
       {"BatchMode=yes", "StrictHostKeyChecking=yes", "ConnectTimeout=10", "ServerAliveInterval=2",
        "ServerAliveCountMax=2", "ClearAllForwardings=yes", "PermitLocalCommand=no",
        "RemoteCommand=none",
        // One that is shared would outlive us, and a stale one would be taken for the node's.
        "ControlMaster=no", "ControlPath=none", "LogLevel=ERROR"}) {
    words.insert(words.end(), {"-o", option});
  }
  if (!host.user.empty()) words.insert(words.end(), {"-l", host.user});
  if (host.port != 0) words.insert(words.end(), {"-p", std::to_string(host.port)});
  words.insert(words.end(), {"--", host.name});
  return words;
}

std::string explained_ssh(const std::string& said, const Host& host) {
  const std::string more = ssh_advice(said, host);
  return more.empty() ? said : said + "\n" + more;
}

}  // namespace mlenv::job
