// Environments that a Dockerfile copies out of another stage, or another image.
#include <gtest/gtest.h>

#include "tests/unit/recipes/init/conversion_test.hpp"

namespace mlenv {
namespace {

class CopiedEnvironmentsTest : public ConversionTest {};

TEST_F(CopiedEnvironmentsTest, AnEnvironmentOfSomebodysImageIsToldInOneLine) {
  const Draft draft = of_docker(
      "FROM ghcr.io/lab/tools:1 AS env\nFROM python:3.11-slim\n"
      "COPY --from=env /opt/venv /opt/venv\nCOPY --from=env /usr/local/lib/x /usr/local/lib/x\n");
  EXPECT_EQ(told(draft, "what `ghcr.io/lab/tools:1` has there"), 1U);
  EXPECT_EQ(draft.python, "3.11");
  const Draft direct =
      of_docker("FROM python:3.11-slim\nCOPY --from=ghcr.io/lab/tools:1 /opt/venv /opt/venv\n");
  EXPECT_EQ(told(direct, "what `ghcr.io/lab/tools:1` has there"), 1U);
  const Draft list = of_docker(
      "FROM ghcr.io/lab/tools:1 AS env\nFROM python:3.11-slim\n"
      "COPY --from=env [\"/opt/venv\", \"/opt/venv\"]\n");
  EXPECT_EQ(told(list, "what `ghcr.io/lab/tools:1` has there"), 1U);
  const Draft unknown = of_docker(
      "ARG IMAGE\nFROM $IMAGE AS env\nFROM python:3.11-slim\nCOPY --from=env /opt/venv /v\n");
  EXPECT_EQ(told(unknown, "a variable in the name of the image"), 1U);
}

TEST_F(CopiedEnvironmentsTest, WhatTheStageMakesItselfIsNotTheImages) {
  const Draft made = of_docker(
      "FROM ghcr.io/lab/tools:1 AS env\nRUN python -m venv /opt/venv && /opt/venv/bin/pip install "
      "idna\nFROM python:3.11-slim\nCOPY --from=env /opt/venv /opt/venv\n");
  EXPECT_EQ(made.packages, Strings{"idna"});
  EXPECT_EQ(told(made, "ghcr.io/lab/tools:1"), 0U);
  const Draft added = of_docker(
      "FROM ghcr.io/lab/tools:1 AS env\nRUN pip install idna\nFROM python:3.11-slim\n"
      "COPY --from=env /usr/local/lib/python3.11/site-packages "
      "/usr/local/lib/python3.11/site-packages\n");
  EXPECT_EQ(added.packages, Strings{"idna"});
  EXPECT_EQ(told(added, "what `ghcr.io/lab/tools:1` has there"), 1U);
}

TEST_F(CopiedEnvironmentsTest, KnownImagesBringWhatTheyAreKnownFor) {
  const Draft torch = of_docker(
      "FROM pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime AS env\nFROM ubuntu:22.04\n"
      "WORKDIR /srv\nCOPY --from=env /opt/conda /opt/conda\n");
  EXPECT_EQ(torch.framework, "pytorch==2.4.0");
  EXPECT_EQ(torch.base, "ubuntu:jammy");
  EXPECT_EQ(torch.workdir, "/srv");
  EXPECT_TRUE(torch.system.empty());
  const Draft python = of_docker(
      "FROM python:3.11-slim AS py\nFROM ubuntu:22.04\nCOPY --from=py /usr/local /usr/local\n");
  EXPECT_EQ(python.python, "3.11");
  EXPECT_EQ(python.base, "") << "Ubuntu's own Python is another";
  const Draft nothing = of_docker(
      "FROM debian:12 AS env\nFROM python:3.11-slim\nCOPY --from=env /opt/venv /opt/venv\n");
  EXPECT_EQ(told(nothing, "`debian:12` has no packages of Python's there"), 1U);
  const Draft uv = of_docker(
      "FROM ghcr.io/astral-sh/uv:0.8 AS uv\nFROM python:3.11-slim\nCOPY --from=uv /uv /uvx "
      "/bin/\n");
  EXPECT_EQ(uv.left_out.size(), 1U);
  EXPECT_EQ(told(uv, "not needed"), 1U);
}

TEST_F(CopiedEnvironmentsTest, PackagesComeThroughAThirdStage) {
  put("requirements.txt", "idna==3.7\n");
  const std::string build =
      "FROM python:3.11 AS build\nCOPY requirements.txt .\nRUN pip wheel -w /out/w -r "
      "requirements.txt\n";
  for (const char* middle :
       {"FROM debian:12 AS middle\nCOPY --from=build /out/w /wheels\n",
        "FROM debian:12 AS middle\nWORKDIR /wheels\nCOPY --from=build /out/w .\n"}) {
    const Draft draft = of_docker(build + middle +
                                  "FROM python:3.11-slim\nCOPY --from=middle /wheels /wheels\n"
                                  "CMD [\"python\", \"-m\", \"x\"]\n");
    EXPECT_EQ(draft.packages, Strings{"idna==3.7"}) << middle;
    EXPECT_EQ(told(draft, "a stage of its own"), 0U) << middle;
  }
  const Draft venv = of_docker(
      "FROM python:3.11 AS build\nRUN python -m venv /made && /made/bin/pip install idna\n"
      "FROM debian:12 AS middle\nCOPY --from=build /made /kept\n"
      "FROM python:3.11-slim\nCOPY --from=middle /kept /kept\n");
  EXPECT_EQ(venv.packages, Strings{"idna"});
  const Draft other = of_docker(
      "FROM python:3.11 AS build\nRUN python -m venv /made && /made/bin/pip install idna\n"
      "FROM debian:12 AS middle\nCOPY --from=build /made /kept\nRUN touch /note\n"
      "FROM python:3.11-slim\nCOPY --from=middle /note /note\n");
  EXPECT_TRUE(other.packages.empty()) << "what is copied on is not in the image";
}

}  // namespace
}  // namespace mlenv
