#include "recipes/ignore.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  IgnorePattern::Mistake mistake;
  const IgnorePattern compiled{pattern, mistake};
  EXPECT_EQ(mistake.message, "") << pattern;
  return compiled.matches(path);
}

IgnoreRules::Fate fate_of(const IgnoreRules& rules, std::string_view path) {
  IgnoreRules::Fate fate;
  for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
    fate = rules.judge(path.substr(0, slash), fate);
    if (slash == std::string_view::npos) return fate;
  }
}

/// Whether a path stays out under these lines.
bool left_out(std::string_view lines, std::string_view path) {
  return fate_of(IgnoreRules::parse(lines, ".mlenvignore"), path).left_out();
}

std::string ignore_mistakes(std::string_view lines) {
  try {
    IgnoreRules::parse(lines, ".mlenvignore");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "ignore-invalid");
    EXPECT_EQ(error.kind(), Kind::usage);
    return error.frames().front();
  }
}

struct PatternCase {
  std::string_view pattern;
  std::string_view path;
  bool expected;
};

TEST(IgnorePattern, IsGosFilepathMatch) {
  const PatternCase cases[] = {
      {"train.py", "train.py", true},
      {"train.py", "src/train.py", false},
      {"train.py", "trainXpy", false},
      {"*", "data", true},
      {"*", "data/x", false},
      {"*.py", "a.py", true},
      {"*.py", "a.pyc", false},
      {"a*b*c", "aXbYbc", true},
      {"a*b*c", "aXbY", false},
      {"src/*", "src/a", true},
      {"src/*", "src/a/b", false},
      {"a?", "ab", true},
      {"a?", "a/", false},
      {"a?", "aé", true},
      {"a??", "aé", false},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[^a-c]x", "dx", true},
      {"[^a-c]x", "ax", false},
      {"a[^x]b", "a/b", false},
      {"[à-ý]", "é", true},
      {R"([\]\-])", "]", true},
      {R"([\]\-])", "-", true},
      {R"([\]\-])", "\\", false},
      {R"(a\*b)", "a*b", true},
      {R"(a\*b)", "aXb", false},
      {"a]b", "a]b", true},
      {"a.(b)|{c}+^$", "a.(b)|{c}+^$", true},
      {"\xff*", "\xff\xfe", true},
  };
  for (const PatternCase& one : cases) {
    EXPECT_EQ(matches(one.pattern, one.path), one.expected) << one.pattern << " " << one.path;
  }
}

TEST(IgnorePattern, TwoStarsAreAnyNumberOfFolders) {
  const PatternCase cases[] = {
      {"**", "a", true},
      {"**", "a/b/c", true},
      {"**/x", "x", true},
      {"**/x", "a/b/x", true},
      {"**/x", "a/bx", false},
      {"**/x", "x/a", false},
      {"**/*.go", "a.go", true},
      {"**/*.go", "a/b/c.go", true},
      {"**/*.go", "a/b.go/c", false},
      {"a/**", "a/b", true},
      {"a/**", "a/b/c", true},
      {"a/**", "a", false},
      {"a/**", "ab/c", false},
      {"a/**/z", "a/z", true},
      {"a/**/z", "a/b/c/z", true},
      {"a/**/z", "a/bz", false},
      {"a/**/z", "b/z", false},
      {"a**/z", "abc/z", true},
      {"a**", "abc/z", true},
      {"**.pyc", "a/b.pyc", true},
      {"**.pyc", "b.pyc", true},
      {"**.p*c", "b.pyc", false},
      {"**/a/**/b", "x/a/y/z/b", true},
      {"**/**/x", "x", true},
      {"a/*/**", "a/b", false},
      {"a/*/**", "a/b/c", true},
  };
  for (const PatternCase& one : cases) {
    EXPECT_EQ(matches(one.pattern, one.path), one.expected) << one.pattern << " " << one.path;
  }
}

TEST(IgnorePattern, TakesNoLongerForManyStars) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern, std::string(2000, 'a') + "b"));
  EXPECT_TRUE(matches(pattern, std::string(2000, 'a')));
}

// The table of Docker's documentation ("Build context", "Syntax").
TEST(Ignore, DoesWhatDockerDocuments) {
  constexpr std::string_view kLines = "# comment\n*/temp*\n*/*/temp*\ntemp?\n";
  EXPECT_TRUE(left_out(kLines, "somedir/temporary.txt"));
  EXPECT_TRUE(left_out(kLines, "somedir/temp/in-it"));
  EXPECT_TRUE(left_out(kLines, "somedir/subdir/temporary.txt"));
  EXPECT_FALSE(left_out(kLines, "a/b/c/temporary.txt"));
  EXPECT_TRUE(left_out(kLines, "tempa"));
  EXPECT_TRUE(left_out(kLines, "tempb/x"));
  EXPECT_FALSE(left_out(kLines, "temp"));
  EXPECT_FALSE(left_out(kLines, "tempab"));
  EXPECT_FALSE(left_out(kLines, "# comment"));

  EXPECT_FALSE(left_out("*.md\n!README.md\n", "README.md"));
  EXPECT_TRUE(left_out("*.md\n!README.md\n", "other.md"));
  constexpr std::string_view kLast = "*.md\n!README*.md\nREADME-secret.md\n";
  EXPECT_FALSE(left_out(kLast, "README-a.md"));
  EXPECT_TRUE(left_out(kLast, "README-secret.md"));
  constexpr std::string_view kWide = "*.md\nREADME-secret.md\n!README*.md\n";
  EXPECT_FALSE(left_out(kWide, "README-secret.md"));
}

TEST(Ignore, CleansPatterns) {
  for (const std::string_view line :
       {"/a/b", "a/b/", " a/b\t", "./a/b", "a//b", "x/../a/b", "a/b\r"}) {
    EXPECT_TRUE(left_out(line, "a/b")) << line;
    EXPECT_TRUE(left_out(line, "a/b/c")) << line;
    EXPECT_FALSE(left_out(line, "c/a/b")) << line;
  }
  for (const std::string_view line : {".", "/", "./", "../a", "", " ", "#a", "a/.."}) {
    EXPECT_FALSE(left_out(line, "a")) << line;
  }
  EXPECT_TRUE(
      left_out("\xEF\xBB\xBF"
               "a",
               "a"));
  EXPECT_TRUE(left_out(" #a", "#a"));  // a comment begins in the first column
  EXPECT_FALSE(left_out("a\n! /a/b", "a/b"));
}

TEST(Ignore, ExceptionsReachIntoFolders) {
  constexpr std::string_view kLines = "*\n!src\nsrc/data\n!src/data/*.json\n";
  const IgnoreRules rules = IgnoreRules::parse(kLines, "i");
  EXPECT_FALSE(fate_of(rules, "src/a.py").left_out());
  EXPECT_TRUE(fate_of(rules, "src/data/big.bin").left_out());
  EXPECT_FALSE(fate_of(rules, "src/data/labels.json").left_out());
  EXPECT_TRUE(fate_of(rules, "doc/a.json").left_out());
  EXPECT_TRUE(rules.may_return("src/data", fate_of(rules, "src/data")));
  EXPECT_FALSE(rules.may_return("doc", fate_of(rules, "doc")));
  EXPECT_TRUE(IgnoreRules::parse("a\n!**/x", "i").may_return("a", {}));
}

TEST(Ignore, WithholdsByNameUnlessAnExceptionNamesIt) {
  for (const std::string_view path :
       {".git/config", "sub/.git", ".venv/bin/python", "a/__pycache__/a.pyc", "x.built", ".env",
        "config/.env", ".env.production", ".ssh/id_rsa", "deploy/id_ed25519.pub", "a/tls.pem",
        ".aws/credentials", ".docker/config.json", ".huggingface/token"}) {
    EXPECT_TRUE(left_out("", path)) << path;
    // An allow-list is no wish for what happens to lie in its folders.
    EXPECT_TRUE(left_out("**\n!*\n!**\n!**/*\n!config\n!config/**\n!a/*\n!.*\n", path)) << path;
  }
  for (const std::string_view path :
       {".env.example", "environment.yml", ".gitignore", "recipe.lock", ".docker/x", "my.envx"}) {
    EXPECT_FALSE(left_out("", path)) << path;
  }
  EXPECT_FALSE(left_out("!.env", ".env"));
  EXPECT_TRUE(left_out("!.env", "config/.env"));
  EXPECT_FALSE(left_out("!**/.env", "config/.env"));
  EXPECT_FALSE(left_out("!certs/*.pem", "certs/ca.pem"));
  EXPECT_FALSE(left_out("!.git", ".git/config"));
  EXPECT_TRUE(left_out("!.aws", ".aws/key.pem"));
  EXPECT_FALSE(left_out("!.aws/config", ".aws/config"));
  EXPECT_TRUE(left_out("!.aws/config", ".aws/credentials"));
  EXPECT_TRUE(left_out("!.env\n*", ".env"));  // and then left out by a line
  const IgnoreRules rules = IgnoreRules::parse("!.aws/config\n!**/*.txt", "i");
  EXPECT_TRUE(rules.may_return(".aws", fate_of(rules, ".aws")));
  EXPECT_FALSE(rules.may_return(".git", fate_of(rules, ".git")));
}

TEST(Ignore, SaysWhichNamesAreSecrets) {
  const IgnoreRules rules;
  EXPECT_TRUE(fate_of(rules, "a/.env").secret);
  EXPECT_TRUE(fate_of(rules, ".ssh").secret);
  EXPECT_FALSE(fate_of(rules, ".ssh/id_rsa").secret);  // its folder was said
  EXPECT_FALSE(fate_of(rules, ".git").secret);
  EXPECT_FALSE(fate_of(IgnoreRules::parse("!.env", "i"), ".env").secret);
}

TEST(Ignore, ShowsEveryMistakeAtItsPlace) {
  EXPECT_EQ(ignore_mistakes("ok\n  [a\n!\nb\\\n[z-a]\n[]a]\n[x-]\n"),
            ".mlenvignore:2:3: `[a` is no pattern: `[` has no `]`\n"
            "      [a\n"
            "      ^\n"
            ".mlenvignore:3:1: `!` makes an exception, and no pattern follows it\n"
            "    !\n"
            "    ^\n"
            ".mlenvignore:4:1: `b\\` is no pattern: there is nothing after `\\` for it to take as "
            "it is\n"
            "    b\\\n"
            "    ^\n"
            ".mlenvignore:5:1: `[z-a]` is no pattern: a range in `[…]` runs backwards\n"
            "    [z-a]\n"
            "    ^\n"
            ".mlenvignore:6:1: `[]a]` is no pattern: in `[…]` a `-` or `]` that means itself is "
            "written with `\\`\n"
            "    []a]\n"
            "    ^\n"
            ".mlenvignore:7:1: `[x-]` is no pattern: in `[…]` a `-` or `]` that means itself is "
            "written with `\\`\n"
            "    [x-]\n"
            "    ^");
}

}  // namespace
}  // namespace mlenv
