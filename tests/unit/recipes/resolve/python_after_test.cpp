#include "recipes/resolve/resolve.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

Lock on_image(std::string interpreter) {
  Lock lock;
  lock.python = "3.11.2";
  lock.base = LockedBase{.manifest = Digest::of(""),
                         .config = {{}, Digest::of(""), 0},
                         .layers = {},
                         .interpreter = std::move(interpreter),
                         .glibc = "2.36"};
  return lock;
}

TEST(PythonAfter, IsThatOfPackagesThatReplaceIt) {
  Lock lock = on_image("/usr/bin/python3.11");
  EXPECT_EQ(python_after(lock), "3.11.2");
  lock.debs = {{"python3.11", "3.11.9-1", "amd64", "pool/a", 1, Digest::of("")},
               {"python3.11-minimal", "3.11.9~rc1-1", "amd64", "pool/b", 1, Digest::of("")},
               {"python3.12-minimal", "3.12.1-1", "amd64", "pool/c", 1, Digest::of("")}};
  EXPECT_EQ(python_after(lock), "3.11.9rc1");
  lock.base->interpreter = "/usr/local/bin/python3.11";
  EXPECT_EQ(python_after(lock), "3.11.2");
}

}  // namespace
}  // namespace mlenv
