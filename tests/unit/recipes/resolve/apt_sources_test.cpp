#include "recipes/resolve/apt_sources.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/resolve/debian.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class AptRoot {
 public:
  void write(const fs::path& file, std::string_view text) const {
    make_folders((folder_.path() / file).parent_path());
    write_file(folder_.path() / file, text, false);
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_{temporary_root()};
};

Recipe recipe_for(std::string suite) {
  Recipe recipe;
  recipe.distribution = "debian";
  recipe.suite = std::move(suite);
  return recipe;
}

std::vector<std::string> shown_sources(const std::vector<DebianSource>& sources) {
  std::vector<std::string> lines;
  for (const DebianSource& source : sources) lines.push_back(source.uris[0] + " " + source.suite);
  return lines;
}

constexpr std::string_view kBookworm = "ID=debian\nVERSION_CODENAME=bookworm\n";

TEST(AptSources, ReadsOneLineEntries) {
  const auto sources = parse_apt_sources(
      "# deb http://off.example/debian bookworm main\n"
      "deb http://a.example/debian bookworm main contrib # why\n"
      "deb\t[ arch=amd64,arm64 signed-by=/k.gpg check-valid-until=no ] https://b.example/d s main\n"
      "deb-src http://a.example/debian bookworm main\n"
      "deb cdrom:[Debian 12]/ bookworm main\n"
      "deb mirror+file:/etc/apt/mirrors/debian.list bookworm main\n"
      "deb http://flat.example ./\n"
      "debfoo http://a.example/debian bookworm main\n"
      "deb [arch=amd64 http://a.example/debian bookworm main\n",
      "list");
  ASSERT_EQ(sources.size(), 3U);
  EXPECT_EQ(sources[0].uris, Strings{"http://a.example/debian"});
  EXPECT_EQ(sources[0].suite, "bookworm");
  EXPECT_EQ(sources[0].components, (Strings{"main", "contrib"}));
  EXPECT_TRUE(sources[0].check_valid_until);
  EXPECT_EQ(sources[1].architectures, (Strings{"amd64", "arm64"}));
  EXPECT_EQ(sources[1].signed_by, "/k.gpg");
  EXPECT_FALSE(sources[1].check_valid_until);
  EXPECT_EQ(sources[2].suite, "./");
  EXPECT_TRUE(sources[2].components.empty());
}

TEST(AptSources, ReadsStanzas) {
  const auto sources = parse_apt_sources(
      "# a comment\n"
      "Types: deb deb-src\n"
      "# in the middle\n"
      "URIs: http://a.example/debian http://b.example/debian cdrom:/x\n"
      "suites: bookworm\n"
      " bookworm-updates\n"
      "Components: main\n"
      "Signed-By:\n"
      " -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
      " .\n"
      " mDMEXgvh\n"
      " -----END PGP PUBLIC KEY BLOCK-----\n"
      "\n"
      "Types: deb\nEnabled: No\nURIs: http://c.example/debian\nSuites: x\nComponents: main\n"
      "\n"
      "Types: deb-src\nURIs: http://d.example/debian\nSuites: x\nComponents: main\n",
      "debian.sources");
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_EQ(sources[0].uris, (Strings{"http://a.example/debian", "http://b.example/debian"}));
  EXPECT_EQ(sources[0].suite, "bookworm");
  EXPECT_EQ(sources[1].suite, "bookworm-updates");
  EXPECT_EQ(sources[1].key,
            "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEXgvh\n"
            "-----END PGP PUBLIC KEY BLOCK-----\n");
}

TEST(AptSources, ReadsTheWholeFolderByName) {
  const AptRoot root;
  root.write("etc/apt/sources.list", "deb http://one.example/debian bookworm main\n");
  root.write("etc/apt/sources.list.d/b.list", "deb http://three.example/debian bookworm main\n");
  root.write("etc/apt/sources.list.d/a.sources",
             "Types: deb\nURIs: http://two.example/debian\nSuites: bookworm\nComponents: main\n");
  root.write("etc/apt/sources.list.d/c.list.save", "deb http://no.example/debian bookworm main\n");
  const auto sources = read_apt_sources(root.path());
  ASSERT_EQ(sources.size(), 3U);
  EXPECT_EQ(sources[0].uris[0], "http://one.example/debian");
  EXPECT_EQ(sources[1].uris[0], "http://two.example/debian");
  EXPECT_EQ(sources[2].uris[0], "http://three.example/debian");
  EXPECT_TRUE(read_apt_sources(root.path() / "absent").empty());
}

TEST(DebianSources, TakesTheDistributionsOwnArchivesAlone) {
  const AptRoot root;
  root.write("etc/os-release", kBookworm);
  root.write("etc/apt/sources.list",
             "deb http://m.example/debian bookworm main\n"
             "deb http://m.example/debian bookworm-updates main\n"
             "deb http://m.example/debian bookworm-backports main\n"
             "deb http://m.example/debian-security bookworm-security main\n"
             "deb http://m.example/debian-security bookworm-security main\n"
             "deb https://docker.example/linux/debian bookworm stable\n"
             "deb https://charts.example/apt stable main\n"
             "deb http://sql.example/debian bookworm-pgdg main\n");
  const auto sources = debian_sources(recipe_for("bookworm"), root.path(), {});
  EXPECT_EQ(shown_sources(sources),
            (Strings{"http://m.example/debian bookworm", "http://m.example/debian bookworm-updates",
                     "http://m.example/debian-security bookworm-security"}));
  for (const DebianSource& source : sources) {
    EXPECT_EQ(source.origin, "Debian");
    EXPECT_FALSE(source.optional);
  }
}

TEST(DebianSources, RenamesTheMachinesOwnRelease) {
  const AptRoot root;
  root.write("etc/os-release", kBookworm);
  root.write("etc/apt/sources.list",
             "deb http://m.example/debian bookworm main\n"
             "deb http://m.example/debian-security bookworm-security main\n");
  const auto trixie = debian_sources(recipe_for("trixie"), root.path(), {});
  EXPECT_EQ(shown_sources(trixie), (Strings{"http://m.example/debian trixie",
                                            "http://m.example/debian-security trixie-security"}));
  EXPECT_TRUE(trixie[0].optional);
  const auto sid = debian_sources(recipe_for("sid"), root.path(), {});
  EXPECT_EQ(shown_sources(sid), Strings{"http://m.example/debian sid"});
}

TEST(DebianSources, RenamesMovingNamesOfDebiansOwnArchive) {
  const AptRoot root;
  root.write("etc/os-release", kBookworm);
  root.write("etc/apt/sources.list", "deb http://m.example/debian stable main\n");
  EXPECT_EQ(shown_sources(debian_sources(recipe_for("bookworm"), root.path(), {})),
            Strings{"http://m.example/debian bookworm"});
}

TEST(DebianSources, ObeysTheRecipeFirst) {
  const AptRoot root;
  Recipe recipe = recipe_for("bookworm");
  recipe.sources.debian.push_back({"http://own.example/debian", "", {}, "/own.gpg"});
  recipe.sources.debian.push_back({"http://own.example/extra", "fast", {"gpu"}, ""});
  const auto sources = debian_sources(recipe, root.path(), "/absent");
  EXPECT_EQ(shown_sources(sources),
            (Strings{"http://own.example/debian bookworm", "http://own.example/extra fast"}));
  EXPECT_EQ(sources[0].components, Strings{"main"});
  EXPECT_EQ(sources[0].signed_by, "/own.gpg");
  EXPECT_TRUE(sources[0].origin.empty());
  EXPECT_EQ(sources[1].components, Strings{"gpu"});
}

TEST(DebianSources, ARecipesOwnComeOnTopWhereTheyLackTheBase) {
  const AptRoot root;
  root.write("etc/os-release", kBookworm);
  root.write("etc/apt/sources.list", "deb http://m.example/debian bookworm main\n");
  Recipe recipe = recipe_for("bookworm");
  recipe.path = "project/recipe.yaml";
  recipe.sources.debian.push_back({"http://own.example/extra", "fast", {"gpu"}, "keys/own.asc"});
  const auto sources = debian_sources(recipe, root.path(), {});
  EXPECT_EQ(shown_sources(sources),
            (Strings{"http://m.example/debian bookworm", "http://own.example/extra fast"}));
  EXPECT_TRUE(sources[0].signed_by.empty()) << "its key is for its own archive";
  EXPECT_EQ(sources[1].signed_by, "project/keys/own.asc");
}

TEST(DebianSources, ASuiteNextToTheBaseWhereAPackageNamesIt) {
  const AptRoot root;
  root.write("etc/os-release", kBookworm);
  root.write("etc/apt/sources.list",
             "deb http://m.example/debian bookworm main\n"
             "deb http://m.example/debian-security bookworm-security main\n");
  Recipe recipe = recipe_for("trixie");
  recipe.system = {{"git/trixie-backports"}, {"tmux/trixie-backports"}, {"curl/forky"}};
  EXPECT_EQ(
      shown_sources(debian_sources(recipe, root.path(), {})),
      (Strings{"http://m.example/debian trixie", "http://m.example/debian-security trixie-security",
               "http://m.example/debian trixie-backports"}));
}

TEST(DebianSources, UbuntuByTheSameRules) {
  const AptRoot root;
  root.write("etc/os-release", "ID=ubuntu\nVERSION_CODENAME=jammy\n");
  root.write("etc/apt/sources.list",
             "deb http://u.example/ubuntu jammy main restricted universe\n"
             "deb http://u.example/ubuntu jammy-updates main universe\n"
             "deb http://u.example/ubuntu jammy-backports main universe\n"
             "deb http://ppa.example/x/ubuntu jammy main\n"
             "deb http://d.example/debian bookworm main contrib\n");
  Recipe recipe = recipe_for("noble");
  recipe.distribution = "ubuntu";
  const auto sources = debian_sources(recipe, root.path(), {});
  EXPECT_EQ(shown_sources(sources),
            (Strings{"http://u.example/ubuntu noble", "http://u.example/ubuntu noble-updates",
                     "http://ppa.example/x/ubuntu noble"}));
  EXPECT_EQ(sources[0].origin, "Ubuntu");  // by which the last is passed over
}

TEST(DebianSources, ObeysTheSourcesFileBeforeTheMachine) {
  const AptRoot root;
  root.write("etc/apt/sources.list", "deb http://machine.example/debian bookworm main\n");
  root.write("mine", "deb http://mine.example/debian bookworm main\n");
  EXPECT_EQ(
      shown_sources(debian_sources(recipe_for("bookworm"), root.path(), root.path() / "mine")),
      Strings{"http://mine.example/debian bookworm"});
  EXPECT_THROW(debian_sources(recipe_for("bookworm"), root.path(), root.path() / "absent"), Error);
}

TEST(DebianSources, SaysWhatToWriteWhenThereAreNone) {
  const AptRoot root;
  root.write("etc/os-release", "ID=ubuntu\nVERSION_CODENAME=jammy\n");
  root.write("etc/apt/sources.list", "deb http://u.example/ubuntu jammy main\n");
  try {
    debian_sources(recipe_for("bookworm"), root.path(), {});
    FAIL() << "found sources";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-sources");
    EXPECT_NE(
        error.hint().find("sources: {debian: [{uri: http://MIRROR/debian, suite: bookworm}]}"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace mlenv
