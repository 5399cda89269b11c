#include "runner/local/patient_hooks.hpp"

#include <gtest/gtest.h>

#include "base/process.hpp"

namespace mlenv {
namespace {

struct Ended {
  Exit exit;
  bool was_read = true;  ///< all of its input
};

/// As crun 1.8 does it.
Ended hook_ended(const CdiHook& hook, std::string_view state) {
  Pipe input = make_pipe();
  Command command{Purpose{"test"}};
  command.argv = hook.argv;
  command.argv[0] = hook.path;
  command.env = hook.env;
  command.stdin_fd = input.read_end.get();
  Child child{command};
  input.read_end.reset();
  Ended result;
  while (!state.empty() && result.was_read) {
    const ssize_t wrote = write_quietly(input.write_end.get(), state);
    result.was_read = wrote > 0;
    if (wrote > 0) state.remove_prefix(static_cast<std::size_t>(wrote));
  }
  input.write_end.reset();
  result.exit = child.wait().value_or(Exit{-1});
  return result;
}

TEST(PatientHooks, OneThatReadsNothingIsNoFailure) {
  // More than a pipe takes, so that whoever writes it meets the end of a hook that is gone.
  const std::string state(1U << 20U, 's');
  const CdiHook hook{"createContainer", "/bin/true", {"true"}, {"PATH=/nonexistent"}, {}};
  EXPECT_FALSE(hook_ended(hook, state).was_read);
  const Ended patient = hook_ended(patient_hook(hook), state);
  EXPECT_TRUE(patient.was_read);
  EXPECT_EQ(patient.exit, Exit{});
}

TEST(PatientHooks, ItsStateArgumentsVariablesAndStatusAreItsOwn) {
  const CdiHook hook{"createRuntime",
                     "/bin/sh",
                     {"sh", "-c",
                      R"(read -r state
                         [ "$state" = '{"a": "$b `c` \\d"}' ] && [ "$1-$2-$K" = 'x y-$HOME-v' ] && exit 7)",
                      "-", "x y", "$HOME"},
                     {"K=v"},
                     3};
  const CdiHook patient = patient_hook(hook);
  EXPECT_EQ(patient.timeout_seconds, 3U);
  EXPECT_EQ(patient.when, "createRuntime");
  EXPECT_EQ(hook_ended(patient, R"({"a": "$b `c` \\d"})").exit.code, 7);
}

TEST(PatientHooks, ThoseOfTheImageAreLeftAlone) {
  const CdiHook hook{"startContainer", "/hook", {"hook"}, {}, {}};
  EXPECT_EQ(patient_hook(hook), hook);
}

}  // namespace
}  // namespace mlenv
