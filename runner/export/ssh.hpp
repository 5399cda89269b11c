#pragma once
// ssh into a run that goes on: sshd of its image, started for each connection by `mlenv ssh-proxy`,
// which ssh(1) calls in place of a network. Nothing listens anywhere.
#include <string>

#include "base/files.hpp"
#include "runner/local/control.hpp"

namespace mlenv {

/// Keys of this user for all runs.
struct SshKeys {
  fs::path identity;     ///< private key of the client; its public one beside it, `.pub`
  fs::path host;         ///< of the servers, likewise
  fs::path known_hosts;  ///< pins the servers' key, under the alias `kSshHostAlias`
};
inline constexpr const char* kSshHostAlias = "mlenv";

/// Those in `folder`; what is absent is made, by ssh-keygen. Throws `cannot-start` without that.
SshKeys provide_ssh_keys(const fs::path& folder);

/// What starts a server inside, on its standard streams. It lets in `authorized`, lines of an
/// authorized_keys file; the session has the run's variables and folder. Its status is 127, with
/// a line on standard error, where the image has no sshd.
ExecRequest sshd_request(const SshKeys& keys, const std::string& authorized);

/// The name that a run gives its user, where it is one: a line of ssh's configuration has it, which
/// nothing of an image may add to. Throws `ssh-failed`.
std::string ssh_user(std::string name);

struct SshEntry {
  std::string run;                ///< as ssh is to call it, after `mlenv-`
  std::string user;               ///< in the run
  std::string command;            ///< a line of shell that becomes the connection
  const SshKeys* keys = nullptr;  ///< null: of a machine that has them not
};
/// For ~/.ssh/config.
std::string render_ssh_entry(const SshEntry& entry);

}  // namespace mlenv
