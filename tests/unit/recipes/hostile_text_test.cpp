// Recipes and locks that want memory, stack or patience: each is read or refused at once, with a
// message that a person can read.
#include <gtest/gtest.h>
#include <algorithm>

#include <array>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/rounds.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kReadable = 8000;  // twenty mistakes with their lines
constexpr std::string_view kHostileHead = "name: a\nbase: debian:bookworm\n";

std::string repeated(std::string_view part, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

/// The code, `read` where there is no error. Whatever is said must fit on a screen.
template <typename Read>
std::string read_outcome(Read&& read) {
  try {
    read();
    return "read";
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), kReadable) << error.code();
    EXPECT_LT(error.hint().size(), kReadable) << error.code();
    return error.code();
  }
}

std::string recipe(const std::string& rest) {
  return read_outcome([&] { (void)parse_recipe(std::string(kHostileHead) + rest, "r.yaml"); });
}

std::string lock(const std::string& text) {
  return read_outcome([&] { (void)parse_lock(text, "r.lock"); });
}

TEST(HostileRecipe, NestingIsBounded) {
  for (const std::string_view open : {"[", "{a: ", "- ", "? ", "[{a: "}) {
    EXPECT_EQ(recipe("packages: " + repeated(open, 20'000)), "recipe-invalid") << open;
  }
  std::string steps = "packages:\n";
  for (std::size_t i = 1; i < 2'000; ++i) steps += std::string(i, ' ') + "- \n";
  EXPECT_EQ(recipe(steps), "recipe-invalid");
}

TEST(HostileRecipe, NothingIsMultiplied) {
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    laughs += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}, *{1}]\n", c,
                          static_cast<char>(c - 1));
  }
  EXPECT_EQ(recipe(laughs), "recipe-invalid");
  EXPECT_EQ(recipe("env: &e {A: b}\nsettings: {<<: *e}\n"), "recipe-invalid");
  EXPECT_EQ(recipe("env: &e\n  A: *e\n"), "recipe-invalid");
}

TEST(HostileRecipe, HugeTextsAreShownInPart) {
  const std::string huge(rounds<std::size_t>(60'000, 900'000), 'x');
  EXPECT_EQ(recipe("workdir: " + huge + "\n"), "recipe-invalid");
  EXPECT_EQ(recipe("framework: \"" + huge + "==\"\n"), "recipe-invalid");
  EXPECT_EQ(recipe(huge + ": 1\n"), "recipe-invalid");
  EXPECT_EQ(recipe("env: {\"A " + huge + "\": b}\n"), "recipe-invalid");
  EXPECT_EQ(recipe("packages: [" + repeated("a b, ", 10'000) + "]\n"), "recipe-invalid");
  EXPECT_EQ(recipe("packages: [" + repeated("é è, ", 10'000) + "]\n"), "recipe-invalid");
  EXPECT_EQ(recipe("system: [\"" + std::string(std::size_t{2} << 20U, 'x') + "\"]\n"),
            "recipe-invalid")
      << "no recipe is as large";
  EXPECT_EQ(recipe("cuda: [" + huge + "\n"), "recipe-invalid");
}

TEST(HostileRecipe, OddBytesAreMistakes) {
  EXPECT_EQ(recipe("workdir: /w\xff\n"), "recipe-invalid");
  EXPECT_EQ(recipe(std::string("workdir: /w\0\n", 13)), "recipe-invalid");
  EXPECT_EQ(recipe("workdir: \"/w\\u0007\"\n"), "recipe-invalid");
  EXPECT_EQ(recipe("workdir: \"/w\\e[31m\"\n"), "recipe-invalid");
  EXPECT_EQ(recipe("packages: [\"a\\u0000b\"]\n"), "recipe-invalid");
}

TEST(HostileLock, NestingIsBounded) {
  EXPECT_EQ(lock("x = " + repeated("[", 100'000)), "lock-invalid");
  EXPECT_EQ(lock("x = " + repeated("{a=", 100'000)), "lock-invalid");
  EXPECT_EQ(lock(repeated("a.", 100'000) + "a = 1\n"), "lock-invalid");
  EXPECT_EQ(lock("[" + repeated("a.", 100'000) + "a]\n"), "lock-invalid");
  EXPECT_EQ(lock(repeated("[[a]]\n", 50'000)), "lock-invalid");
  const std::string version = "version = 1\n";
  EXPECT_EQ(lock(version + repeated("a.", 100'000) + "a = 1\n"), "lock-invalid");
  EXPECT_EQ(lock(version + "[" + repeated("a.", 100'000) + "a]\n"), "lock-invalid");
  EXPECT_EQ(lock(version + repeated("a . ", 100'000) + "a = 1\n"), "lock-invalid");
  EXPECT_EQ(lock(version + repeated("\"a b\".", 100'000) + "a = 1\n"), "lock-invalid");
  EXPECT_EQ(lock(version + repeated("'\\'.", 100'000) + "a = 1\n"), "lock-invalid");
  EXPECT_EQ(lock(version + "x = [\"\"\"\n\"\"\", {" + repeated("a.", 100'000) + "a = 1}]\n"),
            "lock-invalid");
  EXPECT_EQ(lock(version + repeated("x = {a.b.c.d.e = ", 60) + "1" + repeated("}", 60)),
            "lock-invalid");
}

/// Every value of a right lock, replaced by one of every type that TOML has.
TEST(HostileLock, EveryTypeInEveryPlace) {
  constexpr std::array<std::string_view, 15> kValues = {
      "1",          "-9223372036854775808", "1.5",      "inf", "nan", "true", "\"\"",   "\"text\"",
      "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "[]",  "[1]", "{}",   "{a = 1}"};
  Lock sample;
  sample.request.base = "debian:bookworm";
  sample.settings.name = "a";
  sample.settings.workdir = "/w";
  sample.distribution = "debian";
  sample.suite = "bookworm";
  sample.debs = {{"git", "1", "amd64", "pool/g.deb", 1, Digest::of("")}};
  sample.wheels = {{"idna", "3", "idna-3-py3-none-any.whl", 1, Digest::of("w"), true}};
  const std::string text = render_lock(sample);
  std::size_t places = 0;
  for (std::size_t at = text.find(" = "); at != std::string::npos; at = text.find(" = ", at + 1)) {
    const std::size_t begin = at + 3;
    const std::size_t end = std::min(text.find_first_of(",}\n", begin), text.size());
    ++places;
    for (const std::string_view value : kValues) {
      const std::string changed = text.substr(0, begin) + std::string(value) + text.substr(end);
      const std::string code = lock(changed);
      EXPECT_TRUE(code == "lock-invalid" || code == "lock-newer" || code == "read")
          << code << ": " << changed;
    }
  }
  EXPECT_GT(places, 15U);
}

TEST(HostileLock, HugeTextsAreShownInPart) {
  const std::string huge(rounds<std::size_t>(200'000, 3'000'000), 'x');
  EXPECT_EQ(lock("version = \"" + huge + "\"\n"), "lock-invalid");
  EXPECT_EQ(lock(huge + " = 1\n"), "lock-invalid");
  EXPECT_EQ(lock("version = 1\n" + huge + " = 1\n"), "lock-invalid");
  EXPECT_EQ(lock(huge), "lock-invalid");
}

TEST(HostileText, ShownLinesHaveNoOtherLineEnds) {
  try {
    (void)parse_recipe("name: a\nbase: debian:bookworm\nodd: \"x\xC2\x85y\xE2\x80\xA8z\"\n",
                       "r.yaml");
    FAIL() << "it was read";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_EQ(said.find("\xC2\x85"), std::string::npos) << said;
    EXPECT_EQ(said.find("\xE2\x80\xA8"), std::string::npos) << said;
    EXPECT_NE(said.find("\\u{2028}"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace mlenv
