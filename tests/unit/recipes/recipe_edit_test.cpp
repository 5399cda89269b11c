#include "recipes/recipe_edit.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kEditedHead = "name: x\nbase: debian:bookworm\n";

Recipe edited_recipe(std::string_view rest) {
  return parse_recipe(std::string(kEditedHead) + std::string(rest), "r.yaml");
}

/// What is below `name` and `base` once `word` is added.
std::string added(std::string_view rest, const std::string& word,
                  PackageList list = PackageList::packages) {
  const RecipeEdit edit = add_packages(edited_recipe(rest), list, {word});
  EXPECT_TRUE(edit.recipe.source.starts_with(kEditedHead)) << edit.recipe.source;
  const Recipe read = parse_recipe(edit.recipe.source, "r.yaml");
  EXPECT_EQ(read.packages, edit.recipe.packages);
  EXPECT_EQ(read.system, edit.recipe.system);
  return edit.recipe.source.substr(kEditedHead.size());
}

std::string removed(std::string_view rest, const std::string& name,
                    PackageList list = PackageList::packages) {
  const RecipeEdit edit = remove_packages(edited_recipe(rest), list, {name});
  EXPECT_TRUE(edit.recipe.source.starts_with(kEditedHead)) << edit.recipe.source;
  return edit.recipe.source.substr(kEditedHead.size());
}

TEST(RecipeEdit, AddsToListsInBrackets) {
  EXPECT_EQ(added("packages: [a, b]  # why\n", "c"), "packages: [a, b, c]  # why\n");
  EXPECT_EQ(added("packages: [ a ]\n", "c"), "packages: [ a, c ]\n");
  EXPECT_EQ(added("packages: [a, b,]\n", "c"), "packages: [a, b, c,]\n");
  EXPECT_EQ(added("packages: ['a', \"b\"]\n", "c"), "packages: ['a', \"b\", c]\n");
  EXPECT_EQ(added("packages: [\"b ; python_version < '4'\"]\n", "c"),
            "packages: [\"b ; python_version < '4'\", c]\n");
  EXPECT_EQ(added("packages: []\n", "c"), "packages: [c]\n");
  EXPECT_EQ(added("packages: [  ]\n", "c"), "packages: [c]\n");
  EXPECT_EQ(added("packages: [ # none\n]\n", "c"), "packages: [c # none\n]\n");
}

TEST(RecipeEdit, AddsALineToListsOfLines) {
  EXPECT_EQ(added("packages:\n  - a\n  - b  # why\nworkdir: /w\n", "c"),
            "packages:\n  - a\n  - b  # why\n  - c\nworkdir: /w\n");
  EXPECT_EQ(added("packages:\n- a\n\n# next\nworkdir: /w\n", "c"),
            "packages:\n- a\n- c\n\n# next\nworkdir: /w\n");
  EXPECT_EQ(added("packages:\n    -   a", "c"), "packages:\n    -   a\n    -   c");
  EXPECT_EQ(added("packages:\n  - 'a'\n  # - b\n", "c"), "packages:\n  - 'a'\n  - c\n  # - b\n");
}

TEST(RecipeEdit, ANewListGoesBelowTheCommentThatShowsIt) {
  EXPECT_EQ(added("# Python packages\n# packages:\n#   - numpy\n\n# system:\n#   - git\n", "c"),
            "# Python packages\n# packages:\n#   - numpy\npackages: [c]\n\n# system:\n#   - git\n");
  EXPECT_EQ(added("# packages:\n#   - numpy\n# system:\n#   - git", "curl", PackageList::system),
            "# packages:\n#   - numpy\n# system:\n#   - git\nsystem: [curl]");
  EXPECT_EQ(added("#packages: [a]\nworkdir: /w\n", "c"),
            "#packages: [a]\npackages: [c]\nworkdir: /w\n");
  EXPECT_EQ(added("# packages are few\nworkdir: /w\n", "c"),
            "packages: [c]\n# packages are few\nworkdir: /w\n");
  EXPECT_EQ(added("env: {\n# packages:\n  A: b}\n", "c"),
            "packages: [c]\nenv: {\n# packages:\n  A: b}\n");
}

TEST(RecipeEdit, DebianPackagesMayNameTheirArchitecture) {
  EXPECT_EQ(added("system: [git]\n", "git:amd64", PackageList::system),
            "system: [\"git:amd64\"]\n");
  EXPECT_EQ(added("system: [git:amd64]\n", "git", PackageList::system), "system: [git:amd64]\n");
  for (const auto& [item, word, becomes] : std::initializer_list<std::array<const char*, 3>>{
           {"git=1:2.39-1", "git:amd64", "git:amd64=1:2.39-1"},
           {"git/bookworm-backports", "git:amd64", "git:amd64/bookworm-backports"},
           {"git:amd64=1.0", "git=2.0", "git:amd64=2.0"},
           {"git:amd64=1.0", "git/bookworm", "git:amd64/bookworm"},
           {"git:amd64/bookworm", "git=2.0", "git:amd64=2.0"},
           {"git:amd64=1.0", "git:arm64", "git:arm64=1.0"},
           {"git:amd64=1.0", "git:arm64=2.0", "git:arm64=2.0"},
           {"git:amd64=1.0", "git", "git:amd64=1.0"}}) {
    EXPECT_EQ(added(fmt::format("system: [\"{}\"]\n", item), word, PackageList::system),
              fmt::format("system: [\"{}\"]\n", becomes));
  }
  EXPECT_EQ(removed("system: [git:amd64=1.0, curl]\n", "git", PackageList::system),
            "system: [curl]\n");
  EXPECT_EQ(code_of([] { added("", "git:AMD", PackageList::system); }), "bad-package");
}

TEST(RecipeEdit, AddsALineToBracketsOverLines) {
  EXPECT_EQ(added("packages: [\n  a,  # first\n  b,  # second\n]\n", "c"),
            "packages: [\n  a,  # first\n  b,  # second\n  c,\n]\n");
  EXPECT_EQ(added("packages: [\n  a,\n  b  # second\n]\n", "c"),
            "packages: [\n  a,\n  b,  # second\n  c\n]\n");
  EXPECT_EQ(added("packages: [\n  a,\n  b]\n", "c"), "packages: [\n  a,\n  b,\n  c]\n");
  EXPECT_EQ(added("packages: [a,\n  b, # why\n  ]\n", "c"),
            "packages: [a,\n  b, # why\n  c,\n  ]\n");
}

TEST(RecipeEdit, AddsAListWhereThereIsNone) {
  EXPECT_EQ(added("", "c"), "packages: [c]\n");
  EXPECT_EQ(added("\n# last\n", "c"), "packages: [c]\n\n# last\n");
  EXPECT_EQ(added("framework: jax  # fast\ncuda: cpu\n\nworkdir: /w\n", "c"),
            "framework: jax  # fast\ncuda: cpu\npackages: [c]\n\nworkdir: /w\n");
  EXPECT_EQ(added("packages:\n  - a\n  # - b\n\nworkdir: /w\n", "git", PackageList::system),
            "packages:\n  - a\n  # - b\nsystem: [git]\n\nworkdir: /w\n");
  EXPECT_EQ(added("packages: [\n  a\n]\nenv: {A: b}", "git", PackageList::system),
            "packages: [\n  a\n]\nsystem: [git]\nenv: {A: b}");
  EXPECT_EQ(added("packages:\n", "c"), "packages: [c]\n");
  EXPECT_EQ(added("packages:  # none\nworkdir: /w\n", "c"), "packages: [c]  # none\nworkdir: /w\n");
  EXPECT_EQ(added("packages: ~\n", "c"), "packages: [c]\n");
  EXPECT_EQ(added("\"packages\": null # x\n", "c"), "\"packages\": [c] # x\n");
  EXPECT_EQ(added("python: \"3.11\"\n...\n", "c"), "python: \"3.11\"\npackages: [c]\n...\n");
}

TEST(RecipeEdit, KeepsOtherForms) {
  const auto edited = [](std::string_view text, const std::string& word) {
    return add_packages(parse_recipe(text, "r.yaml"), PackageList::packages, {word}).recipe.source;
  };
  EXPECT_EQ(edited("{name: x, base: 'debian:bookworm', packages: [a]}\n", "c"),
            "{name: x, base: 'debian:bookworm', packages: [a, c]}\n");
  EXPECT_EQ(edited("{\"name\": \"x\", \"base\": \"debian:bookworm\"}", "c"),
            "{\"name\": \"x\", \"base\": \"debian:bookworm\", packages: [c]}");
  EXPECT_EQ(edited("{name: x, base: 'debian:bookworm', command: ['a]', b] # ]\n}", "c"),
            "{name: x, base: 'debian:bookworm', command: ['a]', b], packages: [c] # ]\n}");
  EXPECT_EQ(edited("name: x\r\nbase: debian:bookworm\r\npackages:\r\n  - a\r\n", "c"),
            "name: x\r\nbase: debian:bookworm\r\npackages:\r\n  - a\r\n  - c\r\n");
  EXPECT_EQ(edited("name: x\r\nbase: debian:bookworm\r\n", "c"),
            "name: x\r\nbase: debian:bookworm\r\npackages: [c]\r\n");
  EXPECT_EQ(edited("\xEF\xBB\xBF"
                   "name: x\nbase: debian:bookworm\npackages: [a]",
                   "c"),
            "\xEF\xBB\xBF"
            "name: x\nbase: debian:bookworm\npackages: [a, c]");
  EXPECT_EQ(edited("{name: x, base: 'debian:bookworm', workdir: /ö, packages: [a]} # ü\n", "c"),
            "{name: x, base: 'debian:bookworm', workdir: /ö, packages: [a, c]} # ü\n");
}

TEST(RecipeEdit, QuotesWhatNeedsIt) {
  EXPECT_EQ(added("packages: [a]\n", "b[x,y] >= 1, <2"), "packages: [a, \"b[x,y]>=1,<2\"]\n");
  EXPECT_EQ(added("packages:\n  - a\n", "b[x,y] >= 1, <2"), "packages:\n  - a\n  - b[x,y]>=1,<2\n");
  EXPECT_EQ(added("packages: [a]\n", "b ; python_version < \"4\""),
            "packages: [a, 'b ; python_version < \"4\"']\n");
  EXPECT_EQ(added("packages:\n  - a\n", "b ; sys_platform == 'linux'"),
            "packages:\n  - a\n  - \"b ; sys_platform == 'linux'\"\n");
  EXPECT_EQ(added("packages: [a]\n", "null"), "packages: [a, \"null\"]\n");
  EXPECT_EQ(added("packages: [a]\n", "b==1.*,!=1.2"), "packages: [a, \"b==1.*,!=1.2\"]\n");
  EXPECT_EQ(added("system: [git]\n", "g++=4:12.2.0-3", PackageList::system),
            "system: [git, \"g++=4:12.2.0-3\"]\n");
}

TEST(RecipeEdit, ReplacesASpecifierInItsPlace) {
  EXPECT_EQ(added("packages: [a, numpy<2, c]  # why\n", "numpy>=2"),
            "packages: [a, numpy>=2, c]  # why\n");
  EXPECT_EQ(added("packages:\n  - 'Num_Py'  # why\n", "num-py>=2"),
            "packages:\n  - 'Num_Py>=2'  # why\n");
  EXPECT_EQ(added("packages: [\"a[x] ; python_version < '4'\"]\n", "a>2"),
            "packages: [\"a[x]>2 ; python_version < '4'\"]\n");
  EXPECT_EQ(added("packages: [a>1]\n", "a[x]"), "packages: [\"a[x]>1\"]\n");
  EXPECT_EQ(added("packages: [a>1]\n", "a @ ./libs/a"), "packages: [\"a @ ./libs/a\"]\n");
  EXPECT_EQ(added("packages: [\"a[x] @ ./libs/a\"]\n", "a>2"), "packages: [\"a[x]>2\"]\n");
  EXPECT_EQ(added("system: [git=1, vim]\n", "git=2", PackageList::system),
            "system: [git=2, vim]\n");
}

TEST(RecipeEdit, LeavesWhatIsThere) {
  for (const std::string word : {"numpy", "NumPy", "numpy>=2", "numpy >= 2"}) {
    const RecipeEdit edit =
        add_packages(edited_recipe("packages: [ 'numpy >= 2' ]\n"), PackageList::packages, {word});
    EXPECT_TRUE(edit.changes.at(0).none()) << word;
    EXPECT_EQ(edit.recipe.source, std::string(kEditedHead) + "packages: [ 'numpy >= 2' ]\n");
  }
}

TEST(RecipeEdit, SeveralOfANameAreToldApartByMarkers) {
  constexpr std::string_view kBoth =
      "packages:\n  - a<2 ; python_version < '3.9'\n  - a>=2 ; python_version >= '3.9'\n";
  EXPECT_EQ(
      added(kBoth, "a>=3 ; python_version >= '3.9'"),
      "packages:\n  - a<2 ; python_version < '3.9'\n  - \"a>=3 ; python_version >= '3.9'\"\n");
  EXPECT_EQ(added(kBoth, "a"), kBoth);
  EXPECT_EQ(code_of([&] { (void)added(kBoth, "a>=3"); }), "bad-package");
  EXPECT_EQ(removed(kBoth, "a"), "packages:\n");
}

TEST(RecipeEdit, RemovesFromBrackets) {
  EXPECT_EQ(removed("packages: [a, b, c] # why\n", "a"), "packages: [b, c] # why\n");
  EXPECT_EQ(removed("packages: [a, b, c]\n", "b"), "packages: [a, c]\n");
  EXPECT_EQ(removed("packages: [a, b, c]\n", "c"), "packages: [a, b]\n");
  EXPECT_EQ(removed("packages: [a, b,]\n", "b"), "packages: [a,]\n");
  EXPECT_EQ(removed("packages: [a]\n", "a"), "packages: []\n");
  EXPECT_EQ(removed("packages: [a,]\n", "a"), "packages: []\n");
  EXPECT_EQ(removed("packages: [\n  a, # 1\n  b, # 2\n  c  # 3\n]\n", "b"),
            "packages: [\n  a, # 1\n  c  # 3\n]\n");
  EXPECT_EQ(removed("packages: [\n  a,\n  b # 2\n]\n", "b"), "packages: [\n  a,\n]\n");
  EXPECT_EQ(removed("packages: [\n  a, # 1\n  b]\n", "b"), "packages: [\n  a, # 1\n  ]\n");
  EXPECT_EQ(removed("packages: [a, b, # why\n  c]\n", "b"), "packages: [a, # why\n  c]\n");
  EXPECT_EQ(removed("packages: [a, b,\n  c]\n", "b"), "packages: [a,\n  c]\n");
  EXPECT_EQ(removed("packages: [a,\n  b, c]\n", "b"), "packages: [a,\n  c]\n");
  EXPECT_EQ(removed("packages: ['a>1, <2', b]\n", "a"), "packages: [b]\n");
}

TEST(RecipeEdit, RemovesLines) {
  EXPECT_EQ(removed("packages:\n  # first\n  - a  # 1\n  - b\n", "a"),
            "packages:\n  # first\n  - b\n");
  EXPECT_EQ(removed("packages:\n  - a\n  - b\nworkdir: /w\n", "b"),
            "packages:\n  - a\nworkdir: /w\n");
  EXPECT_EQ(removed("packages:\n  - a\n  - b", "b"), "packages:\n  - a");
  EXPECT_EQ(removed("packages:\n- a\nworkdir: /w\n", "a"), "packages:\nworkdir: /w\n");
  EXPECT_EQ(removed("system:\n  - git=1:2.3\n  - vim\n", "git", PackageList::system),
            "system:\n  - vim\n");
}

TEST(RecipeEdit, RemovedIsAsNeverAdded) {
  for (const std::string_view rest : {"packages: [a, b]\n", "packages:\n  - a\n  - b # why\n",
                                      "packages: [\n  a, # 1\n  b, # 2\n]\n",
                                      "packages: []\nworkdir: /w\n", "packages: [a,\n  b]\n"}) {
    const Recipe more =
        add_packages(edited_recipe(rest), PackageList::packages, {"new[x]>=1,<2", "other"}).recipe;
    EXPECT_EQ(remove_packages(more, PackageList::packages, {"other", "New"}).recipe.source,
              std::string(kEditedHead) + std::string(rest));
  }
}

TEST(RecipeEdit, RefusesWhatIsNoPackage) {
  const Recipe small = edited_recipe("packages: [numpy]\nsystem: [git]\n");
  for (const std::string word : {"", "num py", "numpy=2", "-r", "./x.whl", "pytorch", "a @ /b"}) {
    EXPECT_EQ(code_of([&] {
                (void)add_packages(small, PackageList::packages, {"six", word});
              }),
              "bad-package")
        << word;
  }
  for (const std::string word : {"", "Git", "git>=2", "git=", "git/", "git/a=1"}) {
    EXPECT_EQ(code_of([&] { (void)add_packages(small, PackageList::system, {word}); }),
              "bad-package")
        << word;
  }
  EXPECT_EQ(code_of([&] { (void)remove_packages(small, PackageList::packages, {"numpy>1"}); }),
            "bad-package");
  EXPECT_EQ(code_of([&] { (void)remove_packages(small, PackageList::packages, {"six"}); }),
            "not-found");
  try {
    (void)add_packages(small, PackageList::packages, {"six @ https://me:secret@h.example/six.whl"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.frames().front(),
              "`six @ https://***@h.example/six.whl` is not a Python requirement");
  }
}

TEST(RecipeEdit, LeavesUnknownLayoutsAlone) {
  EXPECT_EQ(code_of([&] { (void)removed("packages:\n  - |-\n    a\n  - b\n", "a"); }),
            "recipe-layout");
  EXPECT_EQ(code_of([&] { (void)removed("packages: [a\n  , b]\n", "a"); }), "recipe-layout");
  EXPECT_EQ(code_of([&] { (void)removed("packages: [\n  a\n  , b\n  , c]\n", "b"); }),
            "recipe-layout");
  EXPECT_EQ(code_of([&] { (void)added("? packages\n: ~\n", "a"); }), "recipe-layout");
  EXPECT_EQ(code_of([&] { (void)removed("cuda: '13'\npackages: [a]\n", "a"); }), "recipe-invalid");
}

}  // namespace
}  // namespace mlenv
