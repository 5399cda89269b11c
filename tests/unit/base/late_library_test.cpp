#include "base/late_library.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

template <class Work>
std::string late_code(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const Error& error) {
    return error.code();
  }
  return "";
}

TEST(LateLibrary, CallsWhatItFinds) {
  LateLibrary library{"libm.so.6"};
  auto* const cosine = reinterpret_cast<double (*)(double)>(library.function("cos"));
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(library.function("cos"), library.function("cos"));
}

TEST(LateLibrary, SaysWhichIsAbsentEachTime) {
  LateLibrary library{"libmlenv-has-no-such.so.1"};
  EXPECT_EQ(late_code([&] { library.function("cos"); }), "no-library");
  EXPECT_EQ(late_code([&] { library.function("cos"); }), "no-library");
}

TEST(LateLibrary, RefusesOneThatIsTooOld) {
  LateLibrary library{"libm.so.6"};
  EXPECT_EQ(late_code([&] { library.function("cos_of_next_century"); }), "no-library");
}

}  // namespace
}  // namespace mlenv
