#pragma once
// A recipe with what every recipe has, and the lines that a test is about.
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/recipe.hpp"

namespace mlenv::test {

inline Recipe recipe_with(const std::string& rest) {
  return parse_recipe("name: a\nbase: debian:bookworm\n" + rest, "recipe.yaml");
}

/// What is said of it; empty: nothing is wrong.
inline std::string mistakes_of(const std::string& rest) {
  try {
    recipe_with(rest);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "recipe-invalid");
    return error.what();
  }
  return {};
}

}  // namespace mlenv::test
