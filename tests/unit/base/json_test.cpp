#include "base/json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_depth.hpp"

namespace mlenv {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, IsReadOnlyToADepthThatTheStackBears) {
  EXPECT_TRUE(parse_json(nested(200), "x").is_array());
  for (const std::string& text : {nested(201), nested(5'000'000), std::string(1'000'000, '['),
                                  "{\"a\":" + nested(300) + "}"}) {
    try {
      (void)parse_json(text, "x");
      FAIL() << text.size();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "bad-json");
      EXPECT_NE(std::string(error.what()).find("200 deep"), std::string::npos) << error.what();
    }
  }
}

TEST(Json, BracketsInTextsAreNoDepth) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("[\"" + brackets + "\"]", "x")[0], brackets);
  EXPECT_EQ(parse_json(R"(["\"", "\\", ")" + brackets + "\"]", "x")[2], brackets);
  EXPECT_TRUE(is_too_deep(R"(["\"", "\\", )" + brackets));
}

TEST(Json, ManyBesideEachOtherAreNotDeep) {
  std::string text = "[[]";
  for (int i = 0; i < 1000; ++i) text += ",{\"a\":[]}";
  EXPECT_EQ(parse_json(text + "]", "x").size(), 1001U);
}

}  // namespace
}  // namespace mlenv
