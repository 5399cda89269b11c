// Words of --matrix, their product, and the command with values put in.
#include "runner/matrix/words.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "recipes/text.hpp"
#include "runner/matrix/placeholders.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::matrix {
namespace {

/// The values of one word, with a bar between them.
std::string axis_values(const std::string& word) {
  std::vector<std::string> found;
  const Axis axis = parse_matrix({word}).front();
  for (const auto& row : axis.rows) found.push_back(row.front());
  return join(found, "|");
}

/// What is said of them, without the lines that show the place.
std::string matrix_mistake(const Strings& words) {
  try {
    (void)parse_matrix(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-matrix");
    const std::string text = error.frames().front();
    return text.substr(0, text.find('\n'));
  }
  return "no mistake";
}

TEST(MatrixWords, Values) {
  EXPECT_EQ(axis_values("lr=0.1,0.01"), "0.1|0.01");
  EXPECT_EQ(axis_values("lr=1e-3, 1e-4"), "1e-3|1e-4");
  EXPECT_EQ(axis_values("x=a=b,c"), "a=b|c");
  EXPECT_EQ(axis_values(R"(x="a,b",c,"","say ""hi""")"), R"(a,b|c||say "hi")");
  EXPECT_EQ(axis_values("x=a\"b,c"), "a\"b|c");
  EXPECT_EQ(axis_values("dir=../data,/a..b"), "../data|/a..b");
}

TEST(MatrixWords, Ranges) {
  EXPECT_EQ(axis_values("seed=1..5"), "1|2|3|4|5");
  EXPECT_EQ(axis_values("seed=1..9..4,100"), "1|5|9|100");
  EXPECT_EQ(axis_values("seed=2..-2..-2"), "2|0|-2");
  EXPECT_EQ(axis_values("seed=3..3"), "3");
  EXPECT_EQ(axis_values("fold=08..11"), "08|09|10|11");
  EXPECT_EQ(axis_values("x=\"1..5\""), "1..5");
}

TEST(MatrixWords, MistakesHaveAPlace) {
  EXPECT_EQ(matrix_mistake({"lr=0.1,,0.2"}),
            "--matrix:1:8: a value is missing here; an empty one is `\"\"`");
  EXPECT_EQ(matrix_mistake({"lr="}),
            "--matrix:1:4: a value is missing here; an empty one is `\"\"`");
  EXPECT_EQ(matrix_mistake({"lr=1,2,1"}), "--matrix:1:8: the value `1` is there twice");
  EXPECT_EQ(matrix_mistake({"s=1..3,2"}), "--matrix:1:8: the value `2` is there twice");
  EXPECT_EQ(matrix_mistake({"s=5..1"}),
            "--matrix:1:3: the range is empty; downwards it is `5..1..-1`");
  EXPECT_EQ(matrix_mistake({"s=1..5..-1"}),
            "--matrix:1:3: the range is empty: its step leads away from its end");
  EXPECT_EQ(matrix_mistake({"s=1..5..0"}), "--matrix:1:3: the range's step is 0");
  EXPECT_EQ(matrix_mistake({"s=0.1..0.5"}).substr(0, 47),
            "--matrix:1:3: `0.1..0.5` is no range of whole n");
  EXPECT_EQ(matrix_mistake({"s=1..2000000"}),
            "--matrix:1:3: the range has 2000000 values; a matrix may have 10000 variations");
  EXPECT_EQ(matrix_mistake({"s=9007199254740993..9007199254740994"}).substr(0, 13),
            "--matrix:1:3:");
  EXPECT_EQ(matrix_mistake({"x=\"a"}), "--matrix:1:3: the double quote has no other");
  EXPECT_EQ(matrix_mistake({"x=\"a\"b"}),
            "--matrix:1:6: a comma should follow a value in double quotes");
  EXPECT_EQ(matrix_mistake({"lr"}),
            "--matrix:1:3: `=` and values should follow: `lr=0.1,0.01`, `seed=1..5`");
  EXPECT_EQ(matrix_mistake({"1r=1"}).substr(0, 24), "--matrix:1:1: `1r` canno");
  EXPECT_EQ(matrix_mistake({"MLENV_SEED=1"}),
            "--matrix:1:1: `MLENV_SEED` is mlenv's own; choose another name");
  EXPECT_EQ(matrix_mistake({"output=1"}),
            "--matrix:1:1: `output` is mlenv's own; choose another name");
  EXPECT_EQ(matrix_mistake({"ä=1,,2"}).substr(0, 13), "--matrix:1:1:");
  EXPECT_EQ(matrix_mistake({"lr=1", "lr=2"}), "`--matrix` has the parameter `lr` twice");
  EXPECT_EQ(matrix_mistake({"a=1..101", "b=1..100"}), "the matrix has more than 10000 variations");
  EXPECT_EQ(count_of(parse_matrix({"a=1..100", "b=1..100"})), 10'000U);
}

TEST(MatrixWords, TheLastVariesFastest) {
  const std::vector<Axis> axes = parse_matrix({"lr=a,b", "seed=1..3"});
  EXPECT_EQ(count_of(axes), 6U);
  EXPECT_EQ(names_of(axes), (Strings{"lr", "seed"}));
  std::string text;
  for (std::size_t i = 0; i < 6; ++i) {
    for (const Value& one : values_of(axes, i)) text += one.text;
    text += ' ';
  }
  EXPECT_EQ(text, "a1 a2 a3 b1 b2 b3 ");
}

class MatrixFiles : public testing::Test {
 protected:
  std::string file(std::string_view text) {
    const fs::path path = folder_.path() / "runs.csv";
    write_file(path, text);
    return "@" + path.string();
  }
  /// Without the folder.
  std::string mistake_in(std::string_view text) {
    const std::string found = matrix_mistake({file(text)});
    return found.substr(found.rfind('/') + 1);
  }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(MatrixFiles, HaveAVariationInEachLine) {
  const std::vector<Axis> axes =
      parse_matrix({file("# tried by hand\nlr, size\r\n0.1,small\n\n0.2,\"a,b\"\n"), "seed=1,2"});
  EXPECT_EQ(names_of(axes), (Strings{"lr", "size", "seed"}));
  EXPECT_EQ(count_of(axes), 4U);
  EXPECT_EQ(values_of(axes, 3),
            (std::vector<Value>{{"lr", "0.2"}, {"size", "a,b"}, {"seed", "2"}}));
}

TEST_F(MatrixFiles, MistakesHaveALine) {
  EXPECT_EQ(mistake_in("lr,seed\n0.1,1\n0.2\n"), "runs.csv:3:1: 1 value for 2 names");
  EXPECT_EQ(mistake_in("lr,lr\n1,2\n"), "runs.csv:1:4: `lr` is there twice");
  EXPECT_EQ(mistake_in("lr,s\n1,2\n1,2\n"), "runs.csv:3:1: the same values as in a line before");
  EXPECT_EQ(mistake_in("lr,s\n1,\x1b[2J\n").substr(0, 13), "runs.csv:2:3:");
  EXPECT_EQ(mistake_in("# nothing\n").substr(0, 8), "runs.csv");
  EXPECT_EQ(mistake_in("lr\n").substr(0, 8), "runs.csv");
  EXPECT_EQ(matrix_mistake({"@/no/such/file"}), "cannot read the matrix `/no/such/file`");
}

Strings filled(const Strings& argv) {
  return with_values(argv, {{"lr", "0.1"}, {"loss_weight", "2"}}, 7);
}

TEST(MatrixPlaceholders, AreReplaced) {
  EXPECT_EQ(filled({"--lr={lr}", "{lr}{lr}", "x"}), (Strings{"--lr=0.1", "0.10.1", "x"}));
  EXPECT_EQ(filled({"{output}/{number}"}), (Strings{"/output/7"}));
  EXPECT_EQ(filled({"{{lr}}", "{{{lr}}}"}), (Strings{"{lr}", "{{lr}}"}));
  // What programs have braces for.
  const Strings theirs = {
      "{}", "{x}",   "print(f'{x:.2f} {{y}}')", R"({"lr": 1})", "${HOME}", "awk '{print}'", "{",
      "}",  "{ lr }"};
  EXPECT_EQ(filled(theirs), theirs);
  EXPECT_EQ(filled({R"({"lr": {lr}})"}), (Strings{R"({"lr": 0.1})"}));
  // A value is never looked at again.
  EXPECT_EQ(with_values({"{a}"}, {{"a", "{b}"}, {"b", "1"}}, 1), (Strings{"{b}"}));
}

std::string placeholder_complaint(const Strings& argv) {
  try {
    check_placeholders(argv, {"lr", "loss_weight"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MatrixPlaceholders, AMisspeltOneIsAMistake) {
  EXPECT_NE(placeholder_complaint({"{loss_wieght}"}).find("did you mean `{loss_weight}`?"),
            std::string::npos);
  EXPECT_NE(placeholder_complaint({"{LR}"}).find("did you mean `{lr}`?"), std::string::npos);
  EXPECT_EQ(placeholder_complaint({"{lr}", "{x}", "{ls}", "{loss}", "{output}", "{{LR}}"}), "");
  EXPECT_EQ(filled({"{{LR}}"}), (Strings{"{LR}"}));
}

}  // namespace
}  // namespace mlenv::matrix
