#include "recipes/init/poetry_markers.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using Markers = std::map<std::string, std::string>;

Markers markers_of(const std::string& lock, const std::string& pyproject) {
  return markers_of_poetry_lock(parse_toml({"poetry.lock", lock, "source-invalid", {}}),
                                parse_toml({"pyproject.toml", pyproject, "source-invalid", {}}));
}

TEST(PoetryMarkers, AreThoseOfWhatAsksForAPackage) {
  const Markers found = markers_of(
      "[[package]]\nname = \"a\"\n[package.dependencies]\n"
      "\"Old.Zone\" = {version = \"*\", markers = \"python_version < '3.9'\"}\n"
      "shims = {version = \"*\", markers = \"python_version < '3.8'\"}\n"
      "always = {version = \"*\", markers = \"sys_platform == 'win32'\"}\n"
      "asked = {version = \"*\", markers = \"sys_platform == 'win32'\"}\n"
      "extra = {version = \"*\", markers = \"extra == 'x'\"}\nplain = \">=1\"\n"
      "[[package]]\nname = \"b\"\n[package.dependencies]\nalways = \"*\"\n"
      "shims = [{version = \"<2\", markers = \"python_version < '3.7'\"}]\n",
      "[project]\ndependencies = [\"asked>=1\"]\n[tool.poetry.dependencies]\npython = \"^3.8\"\n");
  EXPECT_EQ(found, (Markers{{"old-zone", "python_version < '3.9'"},
                            {"shims", "(python_version < '3.7') or (python_version < '3.8')"}}));
}

TEST(PoetryMarkers, ALockThatSaysThemIsBelieved) {
  EXPECT_EQ(markers_of("[[package]]\nname = \"a\"\nmarkers = \"x\"\n[package.dependencies]\n"
                       "b = {version = \"*\", markers = \"python_version < '3.9'\"}\n",
                       ""),
            Markers{});
}

}  // namespace
}  // namespace mlenv
