#include "runner/export/devcontainer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

DevContainer bert() {
  DevContainer container;
  container.name = "bert";
  container.digest = "sha256:" + std::string(64, 'a');
  container.python = "/opt/venv/bin/python";
  container.shell = "/bin/bash";
  return container;
}

TEST(DevContainer, TheProjectLiesAtTheWorkdir) {
  DevContainer container = bert();
  EXPECT_EQ(json::parse(devcontainer_json(container))["workspaceFolder"], "/workspace");
  container.image.workdir = "/srv/app";
  const json parsed = json::parse(devcontainer_json(container));
  EXPECT_EQ(parsed["workspaceFolder"], "/srv/app");
  EXPECT_EQ(parsed["workspaceMount"], "source=${localWorkspaceFolder},target=/srv/app,type=bind");
}

TEST(DevContainer, RootGivesWayToAUserWithTheCallersNumber) {
  for (const char* user : {"", "root", "0", "root:root", "0:0", "1000:1000"}) {
    DevContainer container = bert();
    container.image.user = user;
    const json parsed = json::parse(devcontainer_json(container));
    EXPECT_EQ(parsed["remoteUser"], "dev") << user;
    EXPECT_EQ(parsed["updateRemoteUserUID"], false) << user;
    EXPECT_TRUE(says(devcontainer_script(container), "dev:x:$user:$group::/home/dev:/bin/bash"));
  }
}

TEST(DevContainer, AnImagesOwnUserStays) {
  DevContainer container = bert();
  container.image.user = "app:staff";
  const json parsed = json::parse(devcontainer_json(container));
  EXPECT_EQ(parsed["remoteUser"], "app");
  EXPECT_EQ(parsed["updateRemoteUserUID"], false);
  const std::string script = devcontainer_script(container);
  EXPECT_TRUE(says(script, R"(s/^app:\\([^:]*\\):[0-9]*:[0-9]*:/app:\\1:$user:$group:/)"))
      << script;
  EXPECT_TRUE(says(script, "\nUSER app\n"));
}

/// The code of what `make` throws.
template <class Make>
std::string refused_with(Make&& make) {
  try {
    (void)make();
    return {};
  } catch (const Error& error) {
    return error.code();
  }
}

TEST(DevContainer, NothingOfAnImageIsShell) {
  for (const char* user : {"$(touch /tmp/x)", "`id`", "a\nRUN true", "a;b", "a/b", "-a", "1a",
                           "a b", "'", "a\nDOCKERFILE\n:0"}) {
    DevContainer container = bert();
    container.image.user = user;
    EXPECT_EQ(refused_with([&] { return devcontainer_json(container); }), "bad-image") << user;
    EXPECT_EQ(refused_with([&] { return devcontainer_script(container); }), "bad-image") << user;
  }
}

TEST(DevContainer, AWorkdirIsNoMountOption) {
  for (const char* folder : {"/a,source=/", "/a\"b", "/a'b", "/a\nb", "/${localEnv:TOKEN}"}) {
    DevContainer container = bert();
    container.image.workdir = folder;
    EXPECT_EQ(refused_with([&] { return devcontainer_json(container); }), "bad-image") << folder;
  }
  DevContainer container = bert();
  container.image.workdir = "/srv/my app";
  EXPECT_EQ(json::parse(devcontainer_json(container))["workspaceFolder"], "/srv/my app");
}

TEST(DevContainer, AnImageIsTakenByItsDigestAndARecipeBuilt) {
  DevContainer container = bert();
  EXPECT_TRUE(says(devcontainer_script(container), "\ndigest=" + container.digest + "\n"));
  container.recipe = "my recipe.yaml";
  EXPECT_TRUE(says(devcontainer_script(container), "mlenv -q build 'my recipe.yaml' "));
}

TEST(DevContainer, GpusAndNotebooksWhereTheImageHasThem) {
  DevContainer container = bert();
  EXPECT_FALSE(json::parse(devcontainer_json(container)).contains("hostRequirements"));
  container.uses_gpus = true;
  container.has_kernel = true;
  const json parsed = json::parse(devcontainer_json(container));
  EXPECT_EQ(parsed["hostRequirements"]["gpu"], "optional");
  EXPECT_EQ(parsed["customizations"]["vscode"]["extensions"],
            json({"ms-python.python", "ms-toolsai.jupyter"}));
}

TEST(DevContainer, NoFormatOfOursIsLeftInTheScript) {
  const std::string script = devcontainer_script(bert());
  EXPECT_TRUE(says(script, "--format '{{.SecurityOptions}}'"));
  EXPECT_TRUE(says(script, "engine=${MLENV_ENGINE:-docker}"));
}

}  // namespace
}  // namespace mlenv
