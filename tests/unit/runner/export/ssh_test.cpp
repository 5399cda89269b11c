#include "runner/export/ssh.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

TEST(SshEntry, PinsTheServerAndNamesTheKey) {
  const SshKeys keys{"/state/id_ed25519", "/state/host_ed25519", "/state/known_hosts"};
  EXPECT_EQ(render_ssh_entry({"train", "root", "mlenv ssh-proxy train", &keys}),
            "Host mlenv-train\n"
            "  User root\n"
            "  ProxyCommand mlenv ssh-proxy train\n"
            "  HostKeyAlias mlenv\n"
            "  UserKnownHostsFile \"/state/known_hosts\"\n"
            "  StrictHostKeyChecking yes\n"
            "  IdentityFile \"/state/id_ed25519\"\n"
            "  IdentitiesOnly yes\n");
}

TEST(SshEntry, OnAnotherMachineThePersonsOwnKeysCount) {
  EXPECT_EQ(render_ssh_entry({"train", "root", "ssh login mlenv ssh-proxy train", nullptr}),
            "Host mlenv-train\n"
            "  User root\n"
            "  ProxyCommand ssh login mlenv ssh-proxy train\n"
            "  HostKeyAlias mlenv-train\n"
            "  StrictHostKeyChecking accept-new\n");
}

TEST(SshEntry, ItsUserIsAName) {
  for (const char* name : {"root", "1000", "_apt", "john.doe", "machine$", "a-b"}) {
    EXPECT_EQ(ssh_user(name), name);
  }
  for (const char* other : {"", "$", "-oProxyCommand=x", ".a", "a b", "a$b", "a\"b", "a\n",
                            "root\n  ProxyCommand touch /tmp/x", "a%h", "\u00e4"}) {
    try {
      (void)ssh_user(other);
      ADD_FAILURE() << other;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "ssh-failed");
    }
  }
}

TEST(SshdRequest, KeepsKeysOutOfTheCommandLine) {
  const TemporaryFolder folder{temporary_root()};
  const SshKeys keys{folder.path() / "id", folder.path() / "host", folder.path() / "known_hosts"};
  write_file(keys.host, "SECRET\n", false);
  write_file(keys.identity.string() + ".pub", "ssh-ed25519 AAAA mlenv\n", false);
  const ExecRequest request = sshd_request(keys, "ssh-ed25519 BBBB mine\n");
  for (const std::string& word : request.argv) {
    EXPECT_EQ(word.find("SECRET"), std::string::npos);
    EXPECT_EQ(word.find("AAAA"), std::string::npos);
  }
  const std::vector<std::string> expected = {
      "MLENV_SSH_HOST_KEY=SECRET",
      "MLENV_SSH_AUTHORIZED=ssh-ed25519 AAAA mlenv\nssh-ed25519 BBBB mine\n"};
  EXPECT_EQ(request.env, expected);
  EXPECT_FALSE(request.terminal);
}

}  // namespace
}  // namespace mlenv
