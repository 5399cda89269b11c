#include "runner/export/ssh.hpp"

#include <sys/stat.h>
#include <algorithm>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kKeyTime{30};

/// An absent key is made aside: two mlenvs at once end with one pair.
void provide_key(const fs::path& folder, const std::string& name, const std::string& comment) {
  std::error_code unknown;
  if (fs::exists(folder / name, unknown) && fs::exists(folder / (name + ".pub"), unknown)) return;
  const TemporaryFolder aside{folder};
  Command command{Purpose{"ssh-key"}};
  command.argv = {"ssh-keygen", "-q", "-t",    "ed25519", "-N",
                  "",           "-C", comment, "-f",      (aside.path() / name).string()};
  const Captured made = run_captured(command, kKeyTime);
  if (made.exit.code != 0) {
    throw failure("ssh-failed", "ssh-keygen could not make a key")
        .because(std::string(trim(made.err)));
  }
  for (const std::string& file : {name + ".pub", name}) {
    std::error_code error;
    fs::rename(aside.path() / file, folder / file, error);
    if (error) throw os_error(error.value(), "cannot write `{}`", (folder / file).string());
  }
}

/// Runs as the run's user. Where one user id is all that there is, sshd cannot become its own
/// unprivileged user, which therefore gets the number that is there: nobody else is inside.
constexpr const char* kServer = R"sh(set -eu
mask=$(umask)
umask 077
sshd=/usr/sbin/sshd
if ! [ -x $sshd ]; then
  echo 'mlenv: there is no sshd in this run: its recipe needs `system: [openssh-server]`' >&2
  exit 127
fi
d=/run/mlenv-ssh
[ -w /run ] || d=$HOME/.mlenv-ssh
mkdir -p "$d"
put() { cat >"$d/$1.$$" && mv "$d/$1.$$" "$d/$1"; }
pwd | put folder
printf '%s\n' "$MLENV_SSH_HOST_KEY" | put host_key
printf '%s\n' "$MLENV_SSH_AUTHORIZED" | put authorized_keys
unset MLENV_SSH_HOST_KEY MLENV_SSH_AUTHORIZED TERM PWD OLDPWD
export -p | put environment
put session <<END
. '$d/environment'
cd "\$(cat '$d/folder')"
if [ -n "\${SSH_ORIGINAL_COMMAND:-}" ]; then exec "\${SHELL:-/bin/sh}" -c "\$SSH_ORIGINAL_COMMAND"; fi
exec "\${SHELL:-/bin/sh}"
END
sftp=/usr/lib/openssh/sftp-server
for one in /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/sftp-server; do
  if [ -x $one ]; then sftp=$one; fi
done
put config <<END
HostKey $d/host_key
AuthorizedKeysFile $d/authorized_keys
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
UseDNS no
PidFile none
PrintMotd no
LogLevel ERROR
Subsystem sftp $sftp
ForceCommand /bin/sh '$d/session'
END
if [ "$(id -u)" = 0 ]; then
  if ! mkdir -p /run/sshd 2>/dev/null; then
    echo 'mlenv: sshd needs /run/sshd, and the image of this run cannot be written (--read-only): --tmpfs /run has room for it' >&2
    exit 1
  fi
  if [ -w /run/sshd ]; then chmod 755 /run/sshd; fi
  read -r _ _ ids </proc/self/uid_map
  if [ "$ids" = 1 ] && ! grep -q '^sshd:[^:]*:0:0:' /etc/passwd; then
    if ! [ -w /etc/passwd ]; then
      echo 'mlenv: sshd needs a line of /etc/passwd, and the image of this run cannot be written (--read-only)' >&2
      exit 1
    fi
    sed -i 's/^\(sshd:[^:]*\):[0-9]*:[0-9]*:/\1:0:0:/' /etc/passwd
  fi
  # Shells of editors are login shells, whose profile would put another PATH first. Those of other
  # users of the run, and of later runs that start from its files, are none of ours.
  if [ -w /etc/profile.d ]; then
    printf 'if [ -n "${SSH_CONNECTION:-}" ] && [ -r "%s" ]; then . "%s"; fi\n' \
      "$d/environment" "$d/environment" >/etc/profile.d/mlenv.sh
    chmod 644 /etc/profile.d/mlenv.sh
  fi
fi
umask "$mask"
exec $sshd -i -e -f "$d/config"
)sh";

}  // namespace

SshKeys provide_ssh_keys(const fs::path& folder) {
  make_folders(folder);
  (void)::chmod(folder.c_str(), 0700);
  const FileLock lock = FileLock::wait(folder / "busy", FileLock::Mode::exclusive);
  SshKeys keys{folder / "id_ed25519", folder / "host_ed25519", folder / "known_hosts"};
  provide_key(folder, keys.identity.filename(), "mlenv");
  provide_key(folder, keys.host.filename(), "mlenv run");
  const std::string known =
      std::string(kSshHostAlias) + " " + read_file(keys.host.string() + ".pub");
  if (read_file_if_exists(keys.known_hosts) != known) write_file(keys.known_hosts, known);
  return keys;
}

ExecRequest sshd_request(const SshKeys& keys, const std::string& authorized) {
  ExecRequest request;
  request.argv = {"/bin/sh", "-c", kServer};
  // Not in the command line, which others can read.
  request.env = {
      "MLENV_SSH_HOST_KEY=" + std::string(trim(read_file(keys.host))),
      "MLENV_SSH_AUTHORIZED=" + std::string(trim(read_file(keys.identity.string() + ".pub"))) +
          "\n" + authorized};
  return request;
}

std::string ssh_user(std::string name) {
  std::string_view stem = name;
  if (stem.ends_with('$')) stem.remove_suffix(1);
  const bool fits = !stem.empty() && stem.front() != '.' && stem.front() != '-' &&
                    std::all_of(stem.begin(), stem.end(), [](char c) {
                      return is_alphanumeric(c) || c == '_' || c == '.' || c == '-';
                    });
  if (fits) return name;
  throw failure("ssh-failed", "`{}` is no name of a user", printable(name))
      .because("that is what `id -un` says in the run")
      .hint("see what the image has in the place of `id`, and in /etc/passwd");
}

std::string render_ssh_entry(const SshEntry& entry) {
  std::string text = fmt::format(
      "Host mlenv-{0}\n"
      "  User {1}\n"
      "  ProxyCommand {2}\n"
      "  HostKeyAlias {3}\n",
      entry.run, entry.user, entry.command,
      entry.keys != nullptr ? kSshHostAlias : fmt::format("{}-{}", kSshHostAlias, entry.run));
  if (entry.keys == nullptr) return text + "  StrictHostKeyChecking accept-new\n";
  return text + fmt::format(
                    "  UserKnownHostsFile \"{0}\"\n"
                    "  StrictHostKeyChecking yes\n"
                    "  IdentityFile \"{1}\"\n"
                    "  IdentitiesOnly yes\n",
                    entry.keys->known_hosts.string(), entry.keys->identity.string());
}

}  // namespace mlenv
