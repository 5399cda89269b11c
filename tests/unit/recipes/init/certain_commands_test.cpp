// Scripts of builds: what of their conditions and loops is certain before they run.
#include "recipes/init/certain_commands.hpp"

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/shell_script.hpp"
#include "recipes/init/step_words.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

ScriptValues script_values_of(DockerVariables known) {
  ScriptValues values;
  values.known = std::move(known);
  values.empty = {"NOBODY"};
  values.paths = [](std::string_view pattern) {
    return pattern == "*.txt" ? Strings{"a.txt", "b.txt"} : Strings{};
  };
  values.is_file = [](const std::string& name) {
    return name == "here" ? std::optional(true) : std::nullopt;
  };
  values.installs = installs_something;
  return values;
}

Strings texts_of(std::string_view script, DockerVariables known = {}) {
  Strings all;
  for (const ShellCommand& one :
       certain_commands(script, script_values_of(std::move(known))).commands) {
    all.push_back(one.text);
  }
  return all;
}

TEST(CertainCommandsTest, ArgumentsDecideConditions) {
  constexpr std::string_view kIf =
      "if [ \"$X\" != \"\" ]; then pip install a; elif test -n \"$Y\"; then pip install b; else "
      "pip "
      "install c; fi && make";
  EXPECT_EQ(texts_of(kIf, {{"X", ""}, {"Y", ""}}), (Strings{"pip install c", "make"}));
  EXPECT_EQ(texts_of(kIf, {{"X", ""}, {"Y", "1"}}), (Strings{"pip install b", "make"}));
  EXPECT_EQ(texts_of(kIf, {{"X", "1"}}), (Strings{"pip install a", "make"}));
  EXPECT_EQ(texts_of("if [ ! -z $NOBODY ]; then make; fi"), Strings{});
  EXPECT_EQ(texts_of("if [[ $V == 12.* ]]; then make; fi", {{"V", "12.8"}}), Strings{"make"});
  EXPECT_EQ(texts_of("if [ \"$V\" -ge 2 ]; then make; else cmake; fi", {{"V", "12"}}),
            Strings{"make"});
  EXPECT_EQ(texts_of("test -f here && make; false || cmake; true || ctest"),
            (Strings{"make", "cmake"}));
  const CertainScript script = certain_commands(kIf, script_values_of({{"X", ""}, {"Y", ""}}));
  ASSERT_EQ(script.decided.size(), 2U);
  EXPECT_TRUE(script.decided[0].by_argument);
}

TEST(CertainCommandsTest, WhatIsNotKnownStaysWhole) {
  const std::string unknown = "if getent passwd me; then make; fi";
  EXPECT_EQ(texts_of(unknown), Strings{unknown});
  EXPECT_EQ(texts_of("if [ -f elsewhere ]; then make; fi").size(), 1U);
  const std::string loop = "for m in a b; do echo $m > $m.txt; done";
  EXPECT_EQ(texts_of(loop), Strings{loop});
  EXPECT_EQ(texts_of("{ test -f x || wget https://h.example/x; }"),
            Strings{"test -f x || wget https://h.example/x"});
  const std::string tail = "while read x; do echo $x; done < list";
  EXPECT_EQ(texts_of(tail), Strings{tail});
  EXPECT_EQ(texts_of("if broken; then"), Strings({"if broken", "then"}));
}

TEST(CertainCommandsTest, LoopsThatInstallAreUnrolled) {
  EXPECT_EQ(texts_of("for f in $(ls *.txt); do pip install -r $f; done"),
            (Strings{"pip install -r a.txt", "pip install -r b.txt"}));
  EXPECT_EQ(texts_of("for f in *.txt; do cd \"$(dirname \"$f\")\"; pip install -r ${f}; done"),
            (Strings{"cd \".\"", "pip install -r a.txt", "cd \".\"", "pip install -r b.txt"}));
  EXPECT_EQ(
      texts_of("for i in 1 2 3; do add-apt-repository ppa:x && break || { echo again; sleep 5; "
               "}; done"),
      Strings{"add-apt-repository ppa:x"});
  EXPECT_EQ(texts_of("pip install monkeypatch || true && pip install x"),
            (Strings{"pip install monkeypatch", "pip install x"}));
}

TEST(CertainCommandsTest, ChoicesByPatterns) {
  constexpr std::string_view kCase =
      "case ${P} in \"linux/arm64\") exit 1 ;; linux/386|*) conda install -y x ;; esac && ls";
  EXPECT_EQ(texts_of(kCase, {{"P", "linux/amd64"}}), (Strings{"conda install -y x", "ls"}));
  EXPECT_EQ(texts_of(kCase, {{"P", "linux/arm64"}}), (Strings{"exit 1", "ls"}));
  EXPECT_EQ(texts_of("case $(uname -m) in x86_64) make;; esac"), Strings{"make"});
}

TEST(CertainCommandsTest, VariablesOfTheScript) {
  const auto commands =
      certain_commands("[ ${#V} -gt 0 ] && X='torch=='$V'.*' || X=torch; pip install $X",
                       script_values_of({{"V", "2.3.0"}}))
          .commands;
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[1].words, (Strings{"pip", "install", "torch==2.3.0.*"}));
  const auto cuda = certain_commands(
      "V=$(echo \"$C\" | sed 's/.$//' | tr -d '.') && pip install x --index-url "
      "https://w.example/cu$V",
      script_values_of({{"C", "11.8.0"}}));
  EXPECT_EQ(cuda.commands.back().words.back(), "https://w.example/cu118");
}

TEST(ShellValuesTest, OperatorsOfParameters) {
  const DockerVariables known = {{"V", "12.8.1"}, {"P", "a/b/c.tar.gz"}};
  EXPECT_EQ(shell_parameter("V%%.*", known), "12");
  EXPECT_EQ(shell_parameter("V%.*", known), "12.8");
  EXPECT_EQ(shell_parameter("P##*/", known), "c.tar.gz");
  EXPECT_EQ(shell_parameter("P#*/", known), "b/c.tar.gz");
  EXPECT_EQ(shell_parameter("V//./", known), "1281");
  EXPECT_EQ(shell_parameter("V/./-", known), "12-8.1");
  EXPECT_EQ(shell_parameter("#V", known), "6");
  EXPECT_EQ(shell_parameter("W%%.*", known), std::nullopt);
}

TEST(ShellValuesTest, OutputsOfCommands) {
  const DockerVariables known = {{"V", "12.8.1"}};
  const auto out = [&](std::string_view text) { return shell_output(text, known, {}); };
  EXPECT_EQ(out("echo $V | cut -d. -f1,2 | tr -d '.'"), "128");
  EXPECT_EQ(out("echo $V | cut -d'.' -f 1-2"), "12.8");
  EXPECT_EQ(out("echo ${V} | sed 's/\\.//g'"), "1281");
  EXPECT_EQ(out("uname -m"), "x86_64");
  EXPECT_EQ(out("dirname /a/b.txt"), "/a");
  EXPECT_EQ(out("echo $W"), std::nullopt);
  EXPECT_EQ(out("nproc"), std::nullopt);
  EXPECT_EQ(out("echo aaaa | sed -E 's/(a*)*b/x/'"), std::nullopt);
  EXPECT_EQ(out("echo a | sed 's/[/x/'"), std::nullopt);
}

TEST(ShellScriptTest, WhatCannotBeReadIsNone) {
  for (const char* text : {"f() { x; }", "cat <<EOF", "((i++))", "if x; then", "for x; do",
                           "case x in", "\"open", "$(open", "x & y", "{ x"}) {
    EXPECT_FALSE(read_shell_script(text)) << text;
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{ ";
  EXPECT_FALSE(read_shell_script(deep + "x"));
  EXPECT_TRUE(read_shell_script("pip install a>=1 2>&1 | tee x; [[ a && b ]] # c"));
}

}  // namespace
}  // namespace mlenv
