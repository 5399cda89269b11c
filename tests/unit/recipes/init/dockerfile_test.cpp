#include "recipes/init/dockerfile.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/init/shell_words.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

TEST(Dockerfile, JoinsContinuedLinesAndSkipsComments) {
  const auto all = read_dockerfile(
      "# syntax=docker/dockerfile:1\n\n  from debian AS x\r\nRUN a \\\n  # not this\n\n  && b \\  "
      "\n"
      "  c\nCOPY --from=x --chmod=644 p q\n",
      "Dockerfile");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].keyword, "FROM");
  EXPECT_EQ(all[0].line, 3);
  EXPECT_EQ(all[0].text, "debian AS x");
  EXPECT_EQ(all[1].text, "a   && b   c");
  EXPECT_EQ(all[1].line, 4);
  EXPECT_EQ(all[2].flags, (Strings{"--from=x", "--chmod=644"}));
  EXPECT_EQ(all[2].text, "p q");
}

TEST(Dockerfile, ReadsHeredocs) {
  const auto all = read_dockerfile(
      "FROM debian\nRUN <<EOF\nset -e\n# kept\nmake\nEOF\nCOPY <<-\"A\" <<B /x/\none\n\tA\ntwo\nB\n"
      "RUN cat <<<word\n",
      "Dockerfile");
  ASSERT_EQ(all.size(), 4U);
  ASSERT_EQ(all[1].heredocs.size(), 1U);
  EXPECT_EQ(all[1].heredocs[0].text, "set -e\n# kept\nmake\n");
  EXPECT_EQ(all[1].heredocs[0].line, 3);
  ASSERT_EQ(all[2].heredocs.size(), 2U);
  EXPECT_EQ(all[2].heredocs[0].text, "one\n");
  EXPECT_EQ(all[2].heredocs[1].text, "two\n");
  EXPECT_TRUE(all[3].heredocs.empty());
}

TEST(Dockerfile, AnotherEscapeIsTaken) {
  const auto all = read_dockerfile("# escape=`\nFROM debian\nCOPY C:\\a `\n  b\n", "Dockerfile");
  EXPECT_EQ(all[1].text, "C:\\a   b");
}

TEST(Dockerfile, ListsItsMistakes) {
  try {
    read_dockerfile("FORM debian\n  RUNN x\nRUN <<EOF\nx\n", "Dockerfile");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "source-invalid");
    EXPECT_EQ(std::string(error.what()),
              "Dockerfile:1:1: `FORM` is no instruction of a Dockerfile; did you mean `FROM`?\n"
              "    FORM debian\n    ^\n"
              "Dockerfile:2:3: `RUNN` is no instruction of a Dockerfile; did you mean `RUN`?\n"
              "      RUNN x\n      ^\n"
              "Dockerfile:3:1: there is no line `EOF` that ends its heredoc\n"
              "    RUN <<EOF\n    ^");
  }
  EXPECT_THROW(read_dockerfile("# nothing\n", "Dockerfile"), Error);
}

TEST(Dockerfile, ReplacesVariables) {
  const DockerVariables known = {{"A", "one"}, {"EMPTY", ""}};
  const auto expanded = [&](std::string_view text) {
    bool complete = true;
    const std::string value = expand_variables(text, known, complete);
    return complete ? value : "? " + value;
  };
  EXPECT_EQ(expanded("$A-${A}_${A:-x} \\$A $"), "one-one_one $A $");
  EXPECT_EQ(expanded("${B:-x}${B-y}${EMPTY:-z}${A:+w}${B:+w}"), "xyzw");
  EXPECT_EQ(expanded("$B/x"), "? $B/x");
  EXPECT_EQ(expanded("${A%e} ${A//n/x} ${#A}"), "on oxe 3");
  EXPECT_EQ(expanded("${B%x} ${A"), "? ${B%x} ${A");
  bool complete = true;
  EXPECT_EQ(docker_words("a=\"x $A\" 'b $A' c\\ d \"\"", known, complete),
            (Strings{"a=x one", "b $A", "c d", ""}));
  EXPECT_TRUE(complete);
}

TEST(Dockerfile, TellsExecFormFromAShells) {
  EXPECT_EQ(exec_form("[\"a\", \"b c\"]"), (Strings{"a", "b c"}));
  EXPECT_FALSE(exec_form("['a']"));
  EXPECT_FALSE(exec_form("[ -f x ] && y"));
  EXPECT_FALSE(exec_form("[1]"));
}

struct SeenCommand {
  Strings words;
  bool simple;
  bool alone;
  bool control;
  friend bool operator==(const SeenCommand&, const SeenCommand&) = default;
};

std::vector<SeenCommand> seen(std::string_view text, const DockerVariables& known = {}) {
  std::vector<SeenCommand> all;
  for (const ShellCommand& one : shell_commands(text, known)) {
    all.push_back({one.words, one.simple, one.alone, one.control});
  }
  return all;
}

TEST(ShellWords, QuotesAndVariables) {
  EXPECT_EQ(
      seen("pip install 'a>=1' \"b==$V\" c\\ d # no", {{"V", "2"}}),
      (std::vector<SeenCommand>{{{"pip", "install", "a>=1", "b==2", "c d"}, true, true, false}}));
  EXPECT_EQ(seen("$P x", {{"P", "a  b"}}),
            (std::vector<SeenCommand>{{{"a", "b", "x"}, true, true, false}}));
  EXPECT_EQ(seen("a && b; c\nd"), (std::vector<SeenCommand>{{{"a"}, true, true, false},
                                                            {{"b"}, true, true, false},
                                                            {{"c"}, true, true, false},
                                                            {{"d"}, true, true, false}}));
}

TEST(ShellWords, KnowsWhatIsMoreThanACommand) {
  for (const char* text : {"a > b", "a $(b)", "a `b`", "a $X", "a \"$(b)\"", "a 'open", "a <(b)",
                           "a >> b", "a &> b", "a <<< b", "a >"}) {
    EXPECT_FALSE(shell_commands(text, {}).front().simple) << text;
  }
  for (const char* text : {"a | b", "a || b", "a & b"}) {
    const auto all = shell_commands(text, {});
    ASSERT_EQ(all.size(), 2U) << text;
    EXPECT_FALSE(all[0].alone || all[1].alone) << text;
  }
  for (const char* text :
       {"if a; then b; fi", "for x in y; do z; done", "((a))", "{ a; }", "(a", "(a) b"}) {
    EXPECT_TRUE(shell_commands(text, {}).front().control) << text;
  }
}

TEST(ShellWords, RedirectionsAreNoWords) {
  for (const char* text : {"a b >/dev/null", "a b > /dev/null 2>&1", "a b 2> /dev/null", "a b 1>&2",
                           "a >/dev/null b", "a b &>/dev/null"}) {
    EXPECT_EQ(seen(text), (std::vector<SeenCommand>{{{"a", "b"}, true, true, false}})) << text;
  }
  EXPECT_EQ(seen("pip install a>=1 b"),
            (std::vector<SeenCommand>{{{"pip", "install", "a>=1", "b"}, true, true, false}}));
  const auto all = shell_commands("a b <in.txt && echo 2 > x; c", {});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].input, "in.txt");
  EXPECT_TRUE(all[0].simple);
  EXPECT_EQ(all[1].words, (Strings{"echo", "2"}));
  EXPECT_FALSE(all[1].simple);
  EXPECT_EQ(all[2].words, Strings{"c"});
}

TEST(ShellWords, GroupsAndSubstitutionsStayWhole) {
  const auto all = shell_commands("(cd a && make ')' ) > /dev/null; b $(c | d \")\") e | f", {});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].group, "cd a && make ')'");
  EXPECT_FALSE(all[0].control);
  EXPECT_EQ(all[1].words, (Strings{"b", "$(c | d \")\")", "e"}));
  EXPECT_EQ(all[1].text, "b $(c | d \")\") e");
  EXPECT_FALSE(all[1].alone || all[2].alone);
}

TEST(Dockerfile, WhatVariablesMakeIsBounded) {
  const DockerVariables known = {{"A", std::string(600'000, 'x')}};
  bool complete = true;
  const auto code = [&](const auto& expand) -> std::string {
    try {
      expand();
      return "";
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code([&] { expand_variables("$A", known, complete); }), "");
  EXPECT_EQ(code([&] { expand_variables("$A$A", known, complete); }), "too-large");
  EXPECT_EQ(code([&] { expand_variables("${A}${A:-b}", known, complete); }), "too-large");
  EXPECT_EQ(code([&] { docker_words("X=$A Y=b", known, complete); }), "");
  EXPECT_EQ(code([&] { docker_words("X=$A Y=$A", known, complete); }), "too-large");
}

}  // namespace
}  // namespace mlenv
