// Dockerfiles that begin with an image which another Dockerfile of the project builds.
#include <gtest/gtest.h>

#include "tests/unit/recipes/init/conversion_test.hpp"

namespace mlenv {
namespace {

class ProjectImagesTest : public ConversionTest {};

TEST_F(ProjectImagesTest, ADockerfileOfThatNameIsReadFirst) {
  put("Dockerfile.base",
      "FROM python:3.11-slim\nENV A=1\nWORKDIR /srv\nRUN pip install idna\nCMD [\"base\"]\n");
  const Draft draft = of_docker("FROM lab-base:latest\nENV B=$A\nRUN pip install six\n");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, (Strings{"idna", "six"}));
  EXPECT_EQ(draft.workdir, "/srv");
  EXPECT_EQ(draft.command, Strings{"base"});
  EXPECT_EQ(draft.env, (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "1"}}));
  EXPECT_EQ(told(draft, "Dockerfile.base` builds it"), 1U);
  EXPECT_EQ(of_docker("FROM lab-base\nCMD [\"own\"]\n").command, Strings{"own"});
  EXPECT_EQ(of_docker("FROM lab-base\nENTRYPOINT [\"own\"]\n").command, Strings{"own"});
}

TEST_F(ProjectImagesTest, ComposeSaysWhatBuildsIt) {
  put("docker-compose.yml",
      "services:\n  ground:\n    image: lab/ground:2\n    build:\n      context: docker\n"
      "      dockerfile: ground.Dockerfile\n      args: {V: '3.11'}\n  web:\n    build: .\n");
  put("docker/ground.Dockerfile", "ARG V=3.9\nFROM python:$V-slim\nRUN pip install idna\n");
  Draft draft = of_docker("FROM lab/ground:2\nRUN pip install six\n");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, (Strings{"idna", "six"}));
  draft = of_docker("FROM lab/floor:2\nRUN pip install six\n");
  EXPECT_EQ(draft.packages, Strings{"six"}) << "another image";
}

TEST_F(ProjectImagesTest, CommandsSayWhatBuildsIt) {
  put("Makefile",
      "all:\n\tdocker build --build-arg V=3.11 \\\n\t  -t host.example/lab/ground -f "
      "env/ground.txt "
      "env\n");
  put("env/ground.txt", "ARG V=3.9\nFROM python:$V-slim\nRUN pip install idna\n");
  const Draft draft = of_docker("FROM host.example/lab/ground\n");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, Strings{"idna"});
}

TEST_F(ProjectImagesTest, NamesOfOthersAreNotFollowed) {
  put("redis/Dockerfile", "FROM python:3.11-slim\n");
  put("Dockerfile.alpine", "FROM python:3.11-slim\n");
  put("Dockerfile.api", "FROM python:3.11-slim\n");
  for (const char* image : {"redis:7", "node:alpine", "somebody/web-api", "host.example/x-base"}) {
    EXPECT_EQ(told(of_docker(std::string("FROM ") + image + "\n"), "builds it"), 0U) << image;
  }
  put("Dockerfile.base", "FROM other-base\n");
  EXPECT_EQ(told(of_docker("FROM lab-base\n"), "builds it"), 1U) << "not itself again";
}

TEST_F(ProjectImagesTest, WhatCannotBeReadIsTold) {
  put("Dockerfile.base", "FROM debian:12\nNONSENSE x\n");
  const Draft draft = of_docker("FROM lab-base\nRUN pip install six\n");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(told(draft, "it builds the image, and cannot be read"), 1U);
}

TEST_F(ProjectImagesTest, TwoThatBeginWithEachOtherEnd) {
  put("Dockerfile.base", "FROM lab-tools\n");
  put("Dockerfile.tools", "FROM lab-base\n");
  const Draft draft = of_docker("FROM lab-base\n");
  EXPECT_EQ(told(draft, "builds it"), 2U);
}

}  // namespace
}  // namespace mlenv
