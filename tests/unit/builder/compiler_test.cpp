#include "builder/bytecode/compiler.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

TEST(BytecodeCompiler, SaysThatTheInterpreterDied) {
  // A tree with this machine's programs, where `python3.99` ends without an answer.
  constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
  if (!fs::exists(kLoader)) GTEST_SKIP() << "this machine has no `" << kLoader << '`';
  TemporaryFolder base{temporary_root()};
  for (const char* folder : {"usr/bin", "usr/lib", "usr/lib64", "dev", "proc", "tmp"}) {
    make_folders(base.path() / folder);
  }
  fs::copy("/bin/true", base.path() / "usr/bin/python3.99");
  fs::create_directory_symlink("usr/lib64", base.path() / "lib64");
  fs::create_directory_symlink("usr/lib", base.path() / "lib");
  fs::copy(kLoader, base.path() / "usr/lib64/ld-linux-x86-64.so.2");
  make_folders(base.path() / "usr/lib/x86_64-linux-gnu");
  fs::copy("/lib/x86_64-linux-gnu/libc.so.6", base.path() / "usr/lib/x86_64-linux-gnu/libc.so.6");
  BytecodeCompiler compiler({.base = base.path(),
                             .program = "/usr/bin/python3.99",
                             .opt = {},
                             .python_minor = 99,
                             .workers = 1});
  std::string code;
  try {
    compiler.compile({{"/opt/a.py", "a = 1\n"}});
  } catch (const Error& error) {
    if (error.code() == "sandbox-failed") GTEST_SKIP() << error.what();
    code = error.code();
  }
  EXPECT_EQ(code, "bytecode-failed");
}

}  // namespace
}  // namespace mlenv
