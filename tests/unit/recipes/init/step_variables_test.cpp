// Variables and arguments of a Dockerfile that its steps and folders count on.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class StepVariablesTest : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) const {
    make_folders((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, text, false);
  }
  Draft of(const std::string& name) const {
    Draft draft = convert(folder_.path() / name, folder_.path());
    Draft whole = draft;
    if (whole.name.empty()) whole.name = "x";
    choose_for_host(whole, {"debian:bookworm", ""});
    const std::string text = render_draft(whole, "recipe.yaml");
    EXPECT_NO_THROW(parse_recipe(text, "recipe.yaml")) << text;
    return draft;
  }
  Draft of_docker(const std::string& text) const {
    put("Dockerfile", text);
    return of("Dockerfile");
  }
  static std::size_t told(const Draft& draft, std::string_view text) {
    const auto says = [&](const LeftOut& one) {
      return sentence(one).find(text) != std::string::npos;
    };
    return static_cast<std::size_t>(
        std::count_if(draft.left_out.begin(), draft.left_out.end(), says) +
        std::count_if(draft.notes.begin(), draft.notes.end(), says));
  }
  static Strings steps(const Draft& draft) {
    Strings all;
    for (const DraftStep& one : draft.run) all.push_back(one.command);
    return all;
  }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(StepVariablesTest, AVariableThatIsNotInTheRecipeStandsInTheStep) {
  const Draft draft = of_docker(
      "FROM debian:12\nENV PIP_CACHE_DIR=/c/pip UV_X=\"a b\" KEPT=1\n"
      "RUN mkdir -p $PIP_CACHE_DIR/x\nRUN touch \"${UV_X}\" $KEPT\n");
  EXPECT_EQ(steps(draft), (Strings{"cd /\nPIP_CACHE_DIR=/c/pip\nmkdir -p $PIP_CACHE_DIR/x",
                                   "cd /\nUV_X='a b'\ntouch \"${UV_X}\" $KEPT"}));
}

TEST_F(StepVariablesTest, AStepWithoutAValueIsToldAndNotRun) {
  const Draft draft = of_docker(
      "FROM debian:12\nARG NONE\nENV LOST=/x/$NONE\nRUN mkdir -p $LOST && touch /a\n"
      "RUN rm -r /d/$NONE\nRUN touch ${NONE:-/b}\nRUN NONE=/c; touch $NONE\n"
      "RUN touch $NONESUCH\n");
  EXPECT_EQ(draft.run.size(), 3U);
  EXPECT_EQ(told(draft, "`LOST` has no value in the Dockerfile"), 1U);
  EXPECT_EQ(told(draft, "`NONE` has no value in the Dockerfile"), 1U);
  const Draft heredoc =
      of_docker("FROM debian:12\nARG NONE\nRUN python3 <<EOF\nprint('$NONE')\nEOF\n");
  EXPECT_TRUE(heredoc.run.empty());
  EXPECT_EQ(told(heredoc, "`NONE` has no value"), 1U);
}

TEST_F(StepVariablesTest, AVariableCountsBeforeAnArgumentOfItsName) {
  const Draft draft = of_docker("FROM debian:12\nARG V=1\nENV V=2\nRUN touch /$V\n");
  EXPECT_EQ(steps(draft), Strings{"cd /\ntouch /$V"});
}

TEST_F(StepVariablesTest, AUserWhoseNameABuildGivesIsCalledUser) {
  put("a.py", "");
  const Draft draft = of_docker(
      "FROM debian:12\nARG username\nRUN useradd -m ${username}\nWORKDIR /home/${username}/app\n"
      "COPY a.py .\nRUN touch /home/${username}/x\n");
  EXPECT_EQ(draft.workdir, "/home/user/app");
  EXPECT_EQ(told(draft, "ARG username"), 1U);
  ASSERT_EQ(draft.files.size(), 1U);
  EXPECT_EQ(draft.files.front().second, "/home/user/app/");
  ASSERT_EQ(draft.run.size(), 1U);
  EXPECT_NE(draft.run.front().command.find("username=user\n"), std::string::npos);
  EXPECT_EQ(of_docker("FROM debian:12\nARG username=lab\nWORKDIR /home/$username\n").workdir,
            "/home/lab");
}

TEST_F(StepVariablesTest, AFolderWithAnArgumentOfNoValueIsAsDockerMakesIt) {
  Draft draft = of_docker("FROM debian:12\nARG APP\nWORKDIR /opt/${APP}/src\n");
  EXPECT_EQ(draft.workdir, "/opt/src");
  EXPECT_EQ(told(draft, "the folder is `/opt/src`"), 1U);
  draft = of_docker("FROM debian:12\nARG APP\nWORKDIR $APP\n");
  EXPECT_EQ(draft.workdir, "");
  EXPECT_EQ(told(draft, "WORKDIR $APP"), 1U);
}

}  // namespace
}  // namespace mlenv
