#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"
#include "recipes/steering.hpp"
#include "tests/support/small_recipe.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

using test::mistakes_of;
using test::recipe_with;
using Names = std::set<std::string>;

bool tells(const std::string& rest, std::string_view what) {
  const std::string said = mistakes_of(rest);
  EXPECT_NE(said.find(what), std::string::npos) << rest << ": " << said;
  return said.find(what) != std::string::npos;
}

TEST(RecipeSteering, ReadsHowPackagesAreChosen) {
  const Steering steering =
      recipe_with(
          "packages: [xgboost]\n"
          "overrides: [\"numpy <2\", \"attrs>=1 ; python_version < '3.13'\"]\n"
          "exclude: [NVIDIA_nccl.cu12, opencv-python]\n"
          "no-binary: [mpi4py]\nonly-binary: ':all:'\n"
          "prefer-binary: [Scipy]\nprerelease: allow\nexclude-newer: 2024-06-30\n")
          .steering;
  EXPECT_EQ(steering.overrides, (Strings{"attrs>=1 ; python_version < '3.13'", "numpy<2"}));
  EXPECT_EQ(steering.exclude, (Names{"nvidia-nccl-cu12", "opencv-python"}));
  EXPECT_EQ(steering.no_binary, (Names{"mpi4py"}));
  EXPECT_EQ(steering.only_binary, (Names{":all:"}));
  EXPECT_EQ(steering.prefer_binary, (Names{"scipy"}));
  EXPECT_EQ(steering.prerelease, "allow");
  EXPECT_EQ(steering.exclude_newer, "2024-06-30");
  EXPECT_TRUE(recipe_with("overrides:\nexclude: []\nbuild: {env: {}}\n").steering.empty());
}

TEST(RecipeSteering, ReadsIndexesByPackage) {
  const Recipe recipe = recipe_with(
      "index:\n  torch: https://index.example/cu121\n  TorchVision: https://index.example/cu121\n"
      "  flash-attn: {find-links: https://host.example/releases/}\n"
      "  mine: {find-links: ./wheels}\n");
  const std::vector<PackageIndex> expected = {
      {"./wheels", true, {"mine"}},
      {"https://host.example/releases/", true, {"flash-attn"}},
      {"https://index.example/cu121", false, {"torch", "torchvision"}}};
  EXPECT_EQ(recipe.steering.indexes, expected);
  ASSERT_EQ(recipe.index_folders.size(), 1U);
  EXPECT_EQ(recipe.index_folders[0].line, 7);
}

TEST(RecipeSteering, ReadsMetadataAndBuilds) {
  const Steering steering =
      recipe_with(
          "dependency-metadata:\n"
          "  - {name: Flash_Attn, version: \"2.6.3\", requires-dist: [torch, einops],"
          " requires-python: \">=3.9\", provides-extras: [a]}\n"
          "build:\n  constraints: [\"setuptools<81\"]\n  requires: {flash-attn: [torch, ninja]}\n"
          "  env: {MAX_JOBS: 4, flash-attn: {SKIP: \"TRUE\"}}\n"
          "  config-settings: {builddir: b, numpy: {setup-args: [-Da=b, -Dc=d]}}\n"
          "  network: true\n")
          .steering;
  ASSERT_EQ(steering.metadata.size(), 1U);
  EXPECT_EQ(steering.metadata[0],
            (StatedMetadata{"flash-attn", "2.6.3", {"einops", "torch"}, ">=3.9", {"a"}}));
  const BuildSteering& build = steering.build;
  EXPECT_EQ(build.constraints, (Strings{"setuptools<81"}));
  EXPECT_EQ(build.requirements.at("flash-attn"), (Strings{"ninja", "torch"}));
  EXPECT_EQ(build.env.all.at("MAX_JOBS"), "4");
  EXPECT_EQ(build.env.by_name.at("flash-attn").at("SKIP"), "TRUE");
  EXPECT_EQ(build.config_settings.all.at("builddir"), (Strings{"b"}));
  EXPECT_EQ(build.config_settings.by_name.at("numpy").at("setup-args"),
            (Strings{"-Da=b", "-Dc=d"}));
  EXPECT_TRUE(build.network);
}

TEST(RecipeSteering, KeepsConstraintsWithTheirPlaces) {
  const Recipe recipe = recipe_with("constraints: [numpy<2, -c c.txt, sub/limits.in]\n");
  ASSERT_EQ(recipe.constraints.size(), 3U);
  EXPECT_EQ(recipe.constraints[0].text, "numpy<2");
  EXPECT_EQ(recipe.constraints[1].text, "-c c.txt");
  EXPECT_EQ(recipe.constraints[2].text, "-c sub/limits.in");
  EXPECT_EQ(recipe.constraints[2].line, 3);
}

TEST(RecipeSteering, NamesWhatIsWrongAtItsPlace) {
  EXPECT_TRUE(tells("overrides: [numpy=1]\n", "recipe.yaml:3:18: `=` is not a version operator"));
  EXPECT_TRUE(tells("overrides: [\"a @ ./x\"]\n", "a package by address is written under"));
  EXPECT_TRUE(tells("overrides: numpy\n", "`overrides` is a list"));
  EXPECT_TRUE(tells("exclude: [\"numpy<2\"]\n", "is not a package's name"));
  EXPECT_TRUE(tells("exclude: [':all:']\n", "is not a package's name"));
  EXPECT_TRUE(tells("packages: [numpy]\nexclude: [numpy]\n",
                    "recipe.yaml:3:12: `numpy` is asked for here, and `exclude` leaves it out"));
  EXPECT_TRUE(tells("constraints: [\"a[b]<2\"]\n", "a constraint is on a package"));
  EXPECT_TRUE(tells("constraints: [../c.txt]\n", "leads out"));
  EXPECT_TRUE(tells("prerelease: allowed\n", "`prerelease` is one of allow, disallow"));
  for (const char* date : {"2024-6-30", "7 days", "2024-13-01", "2024-06-30T12:00:00+02:00"}) {
    EXPECT_TRUE(tells(std::string("exclude-newer: ") + date + "\n", "neither a day"));
  }
  EXPECT_TRUE(tells("index: {torch: cu121}\n", "is not a URL"));
  EXPECT_TRUE(tells("index: {torch: \"https://me:secret@h.example/\"}\n", "must not hold a login"));
  EXPECT_TRUE(tells("index: {torch: {}}\n", "`find-links` is missing"));
  EXPECT_TRUE(
      tells("index: {a: {find-links: /srv/wheels}}\n", "a folder's path from the recipe's"));
  EXPECT_TRUE(tells("index: {a-b: https://h.example/, A_b: https://h.example/}\n", "given twice"));
  EXPECT_TRUE(tells("dependency-metadata: [{version: '1'}]\n", "`name` is missing"));
  EXPECT_TRUE(tells("dependency-metadata: [{name: a, version: '>1'}]\n", "is not one version"));
  EXPECT_TRUE(
      tells("dependency-metadata: [{name: a, requires-python: '3'}]\n", "is no set of versions"));
  EXPECT_TRUE(tells("build: {requires: {a: [b=1]}}\n", "did you mean `==`"));
  EXPECT_TRUE(tells("build: {env: {a-b: c}}\n", "is not a name for an environment variable"));
  EXPECT_TRUE(tells("build: {env: {A: [c]}}\n", "the value of `A` is a text"));
  EXPECT_TRUE(tells("build: {config-settings: {\"a b\": {c: d}}}\n", "is not a package's name"));
  EXPECT_TRUE(tells("build: {network: 'true'}\n", "`network` is `true` or `false`"));
  EXPECT_TRUE(tells("build: {constraint: [a]}\n", "did you mean `constraints`?"));
  EXPECT_TRUE(tells("override-dependencies: [a]\n", "did you mean `overrides`?"));
}

TEST(Steering, OwnWordsGoBeforeThoseOfFiles) {
  Steering own = recipe_with(
                     "overrides: [numpy<2]\nno-binary: [a]\nprerelease: disallow\n"
                     "index: {torch: https://one.example/}\n"
                     "build: {constraints: [setuptools<81], env: {A: own}}\n")
                     .steering;
  const Steering files = recipe_with(
                             "overrides: [numpy>2, attrs<3]\nonly-binary: [a, b]\n"
                             "prerelease: allow\n"
                             "index: {torch: https://two.example/, jax: https://two.example/}\n"
                             "build: {constraints: [setuptools<70, wheel<1], env: {A: x, B: y}}\n")
                             .steering;
  add_steering(own, files);
  EXPECT_EQ(own.overrides, (Strings{"attrs<3", "numpy<2"}));
  EXPECT_EQ(own.only_binary, (Names{"b"}));
  EXPECT_EQ(own.prerelease, "disallow");
  ASSERT_EQ(own.indexes.size(), 2U);
  EXPECT_EQ(own.indexes[1].packages, (Names{"jax"}));
  EXPECT_EQ(own.build.constraints, (Strings{"setuptools<81", "wheel<1"}));
  EXPECT_EQ(own.build.env.all, (std::map<std::string, std::string>{{"A", "own"}, {"B", "y"}}));
}

Lock lock_steered_by(const std::string& rest) {
  Lock lock;
  const Recipe recipe = recipe_with(rest);
  lock.request = request_of(recipe);
  lock.settings = settings_of(recipe);
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.revision = least_revision(lock);
  return lock;
}

constexpr std::string_view kAllKeys =
    "overrides: [numpy<2]\nexclude: [a]\nno-binary: [b]\nonly-binary: [c]\nprefer-binary: [d]\n"
    "prerelease: allow\nexclude-newer: 2024-06-30T12:00:00Z\nindex: {torch: "
    "https://index.example/x, e: {find-links: w}}\n"
    "dependency-metadata: [{name: f, version: '1', requires-dist: [g], requires-python: '>=3',"
    " provides-extras: [h]}, {name: f}]\n"
    "build: {constraints: [setuptools<81], requires: {i: [j]}, env: {K: \"l\\n\", m: {N: o}},"
    " config-settings: {p q: [r, s], t: {u: v}}, network: true}\n";

TEST(LockSteering, SurvivesWritingAndReading) {
  const Lock lock = lock_steered_by(std::string(kAllKeys));
  EXPECT_EQ(lock.revision, 3);
  const std::string text = render_lock(lock);
  EXPECT_EQ(text.find("index.example"), std::string::npos);
  EXPECT_EQ(parse_lock(text, "r.lock"), lock);
  EXPECT_EQ(render_lock(parse_lock(text, "r.lock")), text);
  EXPECT_LT(lock_steered_by("packages: [numpy]\n").revision, 3);
  EXPECT_EQ(lock_steered_by("constraints: [numpy<2]\n").request.steering, Steering{});
}

std::string lock_refusal_with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << text;
  try {
    parse_lock(text.replace(at, from.size(), to), "r.lock");
  } catch (const Error& error) {
    return error.frames().front();
  }
  return {};
}

TEST(LockSteering, IsReadStrictly) {
  const std::string text = render_lock(lock_steered_by(std::string(kAllKeys)));
  const auto refused = [&](std::string_view from, std::string_view to, std::string_view why) {
    const std::string said = lock_refusal_with(text, from, to);
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  refused("revision = 3", "revision = 2", "locks of revision 2 have no `steering`");
  refused("exclude = [\"a\"]", "exclude = [\"A\"]", "is not a normalised package name");
  refused("exclude = [\"a\"]", "exclude = [\":all:\"]", "is not a normalised package name");
  refused("exclude = [\"a\"]", "excluded = [\"a\"]", "exclude");
  refused("exclude = [\"a\"]", "exclude = [\"x\"]", "this checksum is not of its content");
  refused("\"numpy<2\"", "\"numpy @ ./x\"", "is not a requirement of an index");
  refused("prerelease = \"allow\"", "prerelease = \"yes\"", "none of uv's words");
  refused("\"2024-06-30T12:00:00Z\"", "\"June\"", "neither a day nor a moment");
  refused("torch = \"", "torch = \"x", "hex digits");
  refused("K = \"", "\"K L\" = \"", "is not a name for an environment variable");
  refused("network = true", "network = 1", "network");
}

TEST(LockSteering, DifferencesAreTold) {
  const Lock from = lock_steered_by("overrides: [numpy<2]\nindex: {torch: https://one.example/}\n");
  const Lock to = lock_steered_by(
      "overrides: [numpy<3]\nexclude: [a]\nindex: {torch: https://two.example/}\n"
      "build: {env: {m: {N: o}}, network: true}\n");
  const Strings lines = lock_differences(from, to);
  const auto has = [&](std::string_view start) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.starts_with(start); });
  };
  EXPECT_TRUE(has("requested override of numpy: numpy<2 → numpy<3"));
  EXPECT_TRUE(has("requested exclude: none → a"));
  EXPECT_TRUE(has("requested index of torch: address "));
  EXPECT_TRUE(has("requested build env of m: none → N=o"));
  EXPECT_TRUE(has("requested build network: none → true"));
}

}  // namespace
}  // namespace mlenv
