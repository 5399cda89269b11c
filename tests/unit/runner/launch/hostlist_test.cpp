#include "runner/launch/hostlist.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::job {
namespace {

TEST(Hostlist, IsExpandedInItsOrder) {
  EXPECT_EQ(expand_hostlist("n1"), (Strings{"n1"}));
  EXPECT_EQ(expand_hostlist("n[1-3]"), (Strings{"n1", "n2", "n3"}));
  EXPECT_EQ(expand_hostlist("a[08-11,3],b"), (Strings{"a08", "a09", "a10", "a11", "a3", "b"}));
  EXPECT_EQ(expand_hostlist("gpu[008-010,2]-ib,x"),
            (Strings{"gpu008-ib", "gpu009-ib", "gpu010-ib", "gpu2-ib", "x"}));
  EXPECT_EQ(expand_hostlist("r[1-2]n[1-2]"), (Strings{"r1n1", "r1n2", "r2n1", "r2n2"}));
}

TEST(Hostlist, WhatIsNoneIsRefused) {
  for (const char* list : {"", "n[", "n[1", "n1]", "n[a-b]", "n[3-1]", "n[1-20000]", "a,,b", "n[]",
                           "n[1-9999][1-9999]", "n[1-]", "n[18446744073709551616]", "../n",
                           "-oProxyCommand=x", "n 1", "n\n1", ".n", "n[00000000000000000000001]"}) {
    EXPECT_EQ(code_of([&] { (void)expand_hostlist(list); }), "no-node") << list;
  }
}

TEST(Hostlist, BracketsHaveAnEnd) {
  std::string deep = "n";
  for (int i = 0; i < 50'000; ++i) deep += "[1]";
  EXPECT_EQ(code_of([&] { (void)expand_hostlist(deep); }), "no-node");
}

}  // namespace
}  // namespace mlenv::job
