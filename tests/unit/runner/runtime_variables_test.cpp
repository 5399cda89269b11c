#include "runner/runtime_variables.hpp"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(RuntimeVariables, AreThoseThatTheProgramsRead) {
  for (const char* name :
       {"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "LC_ALL"}) {
    EXPECT_TRUE(is_runtime_variable(Starts::oci_runtime, name)) << name;
    EXPECT_TRUE(is_runtime_variable(Starts::engine, name)) << name;
  }
  for (const char* name : {"DOCKER_HOST", "DOCKER_CONFIG", "CONTAINERS_STORAGE_CONF", "https_proxy",
                           "DBUS_SESSION_BUS_ADDRESS", "_CONTAINERS_ROOTLESS_UID"}) {
    EXPECT_FALSE(is_runtime_variable(Starts::oci_runtime, name)) << name;
    EXPECT_TRUE(is_runtime_variable(Starts::engine, name)) << name;
  }
  for (const char* name : {"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "AWS_SECRET_ACCESS_KEY",
                           "_LIBCONTAINER_INITPIPE", "LD_PRELOAD", "PYTHONPATH", "GODEBUG", ""}) {
    EXPECT_FALSE(is_runtime_variable(Starts::oci_runtime, name)) << name;
    EXPECT_FALSE(is_runtime_variable(Starts::engine, name)) << name;
  }
}

TEST(RuntimeVariables, ComeWithTheirValues) {
  ::setenv("XDG_MLENV_TEST", "a=b", 1);     // NOLINT(concurrency-mt-unsafe): one thread
  ::setenv("MLENV_TEST_SECRET", "shh", 1);  // NOLINT(concurrency-mt-unsafe)
  const std::vector<std::string> all = runtime_variables(Starts::oci_runtime);
  EXPECT_EQ(std::count(all.begin(), all.end(), "XDG_MLENV_TEST=a=b"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "MLENV_TEST_SECRET=shh"), 0);
  ::unsetenv("XDG_MLENV_TEST");     // NOLINT(concurrency-mt-unsafe)
  ::unsetenv("MLENV_TEST_SECRET");  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace mlenv
