// Variables and arguments of a Dockerfile that its steps and folders count on.
#include <gtest/gtest.h>

#include "tests/unit/recipes/init/conversion_test.hpp"

namespace mlenv {
namespace {

class StepVariablesTest : public ConversionTest {};

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
