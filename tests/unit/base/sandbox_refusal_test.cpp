// What a user is told where there is no sandbox. The trees stand for machines: they show which
// words go with which setting, not that a kernel of that setting refuses.
#include "base/sandbox/refusal.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/process.hpp"

namespace mlenv::sandbox {
namespace {

using Settings = std::map<std::string, std::string>;

class SandboxRefusalTest : public testing::Test {
 protected:
  /// `REASON | HINT`, of a refusal with `cause` on a machine that has these files.
  std::string told(const Settings& files, bool is_root,
                   std::string cause = "Operation not permitted") {
    const TemporaryFolder machine{folder_.path()};
    for (const auto& [path, text] : files) {
      make_folders((machine.path() / path).parent_path());
      write_file(machine.path() / path, text + "\n", false);
    }
    Error error = failure("sandbox-failed", "cannot set up the sandbox");
    error.because("cannot make a user namespace").because(std::move(cause));
    const Error found = explained(std::move(error), {machine.path(), is_root, false});
    return found.frames().back() + " | " + found.hint();
  }
  static void has(const std::string& text, std::string_view words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(SandboxRefusalTest, NamesTheSettingAndWhatToDo) {
  const std::string none = told({{"proc/sys/user/max_user_namespaces", "0"}}, false);
  has(none, "`user.max_user_namespaces` is 0");
  has(none, "| as root: `sysctl -w user.max_user_namespaces=15000`");
  has(told({{"proc/sys/user/max_user_namespaces", "0"}}, true), "`user.max_user_namespaces` is 0");
  const Settings clone = {{"proc/sys/kernel/unprivileged_userns_clone", "0"}};
  has(told(clone, false), "`kernel.unprivileged_userns_clone` is 0");
  has(told(clone, false), "| as root: `sysctl -w kernel.unprivileged_userns_clone=1`");
  const Settings apparmor = {{"proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"}};
  has(told(apparmor, false), "`kernel.apparmor_restrict_unprivileged_userns` is 1");
  has(told(apparmor, false), "give mlenv its AppArmor profile");
}

TEST_F(SandboxRefusalTest, BlamesNoSettingThatAllows) {
  const Settings allowing = {{"proc/sys/user/max_user_namespaces", "15000"},
                             {"proc/sys/kernel/unprivileged_userns_clone", "1"},
                             {"proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0"}};
  EXPECT_EQ(told(allowing, false), "Operation not permitted | ");
  // Root may where these two keep ordinary users from it.
  EXPECT_EQ(told({{"proc/sys/kernel/unprivileged_userns_clone", "0"},
                  {"proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"}},
                 true),
            "Operation not permitted | ");
}

TEST_F(SandboxRefusalTest, KnowsContainersAndOldKernels) {
  for (const Settings& files : {Settings{{".dockerenv", ""}}, Settings{{"run/.containerenv", ""}},
                                Settings{{"proc/self/status", "Name:\tmlenv\nSeccomp:\t2"}}}) {
    has(told(files, false), "this container forbids namespaces or mounts");
    has(told(files, false), "run the container as root");
  }
  has(told({}, false, errno_text(ENOSYS)), "use a machine with Linux 5.12 or newer");
  has(told({}, false, "another supervisor is at work"), "run mlenv outside of it");
}

TEST_F(SandboxRefusalTest, LeavesOtherErrorsAlone) {
  const Error error = explained(failure("cannot-start", "x"), {folder_.path(), false, false});
  EXPECT_EQ(error.frames().size(), 1U);
  EXPECT_EQ(error.hint(), "");
}

TEST(SandboxReport, IsNotWaitedForWithoutEnd) {
  Pipe report = make_pipe();
  try {
    (void)trouble_in(report.read_end, std::chrono::milliseconds{1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "sandbox-failed");
    EXPECT_NE(std::string(error.what()).find("was not set up within"), std::string::npos);
  }
  write_all(report.write_end.get(), as_bytes("cannot mount"));
  report.write_end.reset();
  EXPECT_EQ(trouble_in(report.read_end, std::chrono::minutes{1}), "cannot mount");
}

}  // namespace
}  // namespace mlenv::sandbox
