// Files that `requirements` names: what they ask for, and their mistakes at their place.
#include "recipes/requirement_files.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/logins.hpp"
#include "recipes/recipe_edit.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

const std::string kOne(64, '1');
const std::string kTwo(64, '2');

class RequirementFilesTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const fs::path where = folder_.path() / path;
    fs::create_directories(where.parent_path());
    write_file(where, text, /*durable=*/false);
  }
  Recipe recipe(const std::string& value) {
    put("recipe.yaml", "name: a\nbase: debian:bookworm\nrequirements: " + value + "\n");
    return read_recipe(folder_.path() / "recipe.yaml");
  }
  RequirementLists lists(const std::string& value) { return recipe(value).listed; }
  /// Code and message, the folder left out.
  std::string refused(const std::string& value) {
    try {
      recipe(value);
      return "nothing";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Kind::usage);
      std::string text = error.code() + ' ' + error.frames().front();
      const std::string own = folder_.path().string() + '/';
      for (std::size_t at = text.find(own); at != std::string::npos; at = text.find(own)) {
        text.erase(at, own.size());
      }
      return text;
    }
  }
  std::string refused_line(const std::string& text) {
    put("r.txt", text);
    return refused("r.txt");
  }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(RequirementFilesTest, LinesAsPipReadsThem) {
  put("r.txt",
      "\xEF\xBB\xBF# what the model needs\r\n"
      "Numpy >= 2 , <3  # not 1\r\n"
      "wheel;'3' not in python_version and(os_name=='nt'or os_name == \"posix\")\n"
      "\n"
      "torch[opt]==2.9.0 ; python_version >= '3.10' \\\n"
      "    --hash=sha256:" +
          kOne +
          " \\\n"
          "    --hash sha384:00 --hash=sha256:" +
          kTwo +
          "\n"
          "six\\\n"
          "==1.16\n"
          "--only-binary :all:\n"
          "-r more/dev.txt\n"
          "-climits.txt");
  put("more/dev.txt", "pytest\n--constraint=../limits.txt\n");
  put("limits.txt", "numpy<2.3\n-r more/limits.txt\n");
  put("more/limits.txt", "attrs!=25.1");
  const RequirementLists found = lists("[r.txt]");
  EXPECT_EQ(
      found.requirement_texts(),
      (Strings{"Numpy>=2,<3", "pytest", "six==1.16", "torch[opt]==2.9.0 ; python_version >= '3.10'",
               "wheel ; '3' not in python_version and(os_name=='nt'or os_name == \"posix\")"}));
  EXPECT_EQ(found.constraint_texts(), (Strings{"attrs!=25.1", "numpy<2.3"}));
  ASSERT_EQ(found.hashes.size(), 1U);
  EXPECT_EQ(found.hashes.begin()->first, (RequirementLists::Release{"torch", "2.9.0"}));
  EXPECT_EQ(found.hashes.begin()->second.sha256, (std::set<std::string>{kOne, kTwo}));
  EXPECT_EQ(found.requirements[3].line, 8);
  EXPECT_EQ(lists("r.txt").requirement_texts(), found.requirement_texts());
}

TEST_F(RequirementFilesTest, IndexesArePassedOn) {
  put("req/r.txt",
      "-i https://mirror.example/simple\n--extra-index-url=http://mirror.example/cpu\n"
      "-fwheels\nnumpy\n--no-index\n-i https://mirror.example/simple\n");
  const Strings texts = lists("req/r.txt").indexes;
  ASSERT_EQ(texts.size(), 4U);
  EXPECT_EQ(texts[0], "--index-url https://mirror.example/simple");
  EXPECT_EQ(texts[1], "--extra-index-url http://mirror.example/cpu");
  EXPECT_TRUE(texts[2].starts_with("--find-links file:///")) << texts[2];
  EXPECT_TRUE(texts[2].ends_with("/req/wheels")) << texts[2];
  EXPECT_TRUE(index_path(texts[1]).empty());
  EXPECT_EQ(texts[3], "--no-index");
  EXPECT_EQ(lists("req/r.txt").requirement_texts(), Strings{"numpy"});
}

TEST_F(RequirementFilesTest, FoldersOfPackagesMayHaveBlanksInTheirNames) {
  put("req/r.txt",
      "--find-links \"my wheels\"\n--find-links='my wheels'\n-f my\\ wheels\n"
      "-f file:///srv/my%20wheels\n-f \"file:///srv/my wheels\"\n-f file:near\n");
  const Strings texts = lists("req/r.txt").indexes;
  ASSERT_EQ(texts.size(), 3U);
  EXPECT_TRUE(texts[0].ends_with("/req/my%20wheels")) << texts[0];
  EXPECT_TRUE(index_path(texts[0]).string().ends_with("/req/my wheels")) << index_path(texts[0]);
  EXPECT_EQ(texts[1], "--find-links file:///srv/my%20wheels");
  EXPECT_EQ(index_path(texts[1]), "/srv/my wheels");
  EXPECT_TRUE(texts[2].ends_with("/req/near")) << texts[2];
}

TEST_F(RequirementFilesTest, ThereIsOneDefaultIndex) {
  put("more.txt", "six\n  --index-url https://b.example/simple\n");
  EXPECT_EQ(
      refused_line("-i https://a.example/simple\n-i https://b.example/simple\n"),
      "requirements-invalid r.txt:2:4: there is one default index, and r.txt:1 names another: "
      "write `--extra-index-url` where both are meant, else leave one out\n"
      "    -i https://b.example/simple\n"
      "       ^");
  const std::string nested = refused_line("-i https://a.example/simple\n-r more.txt\n");
  EXPECT_TRUE(
      nested.starts_with("requirements-invalid more.txt:2:15: there is one default index, "
                         "and r.txt:1 names another"))
      << nested;
}

TEST_F(RequirementFilesTest, LoginsAreNotShown) {
  EXPECT_EQ(refused_line("a --x -i https://me:secret@mirror.example/simple --bad\n"),
            "requirements-invalid r.txt:1:3: unknown option `--x`\n"
            "    a --x -i https://***@mirror.example/simple --bad\n"
            "      ^");
  EXPECT_EQ(refused_line("-i https://me:se/cret@mirror.example/simple # x\n"),
            "requirements-invalid r.txt:1:4: a file that people share must not hold a login; keep "
            "it in `~/.netrc`\n"
            "    -i https://***@mirror.example/simple # x\n"
            "       ^");
  EXPECT_EQ(refused_line("-i https://token@mirror.example/simple x\n"),
            "requirements-invalid r.txt:1:40: `x` stands after an option; a value with blanks is "
            "written in quotes\n"
            "    -i https://***@mirror.example/simple x\n"
            "                                         ^");
  EXPECT_EQ(refused_line("-i ftp://me:secret@mirror.example\n"),
            "requirements-invalid r.txt:1:4: `ftp://***@mirror.example` is no URL that starts with "
            "`https://`, `http://` or `file://`\n"
            "    -i ftp://***@mirror.example\n"
            "       ^");
  EXPECT_EQ(without_logins("git+ssh://git@h.example/x http://h.example:80/y@z"),
            "git+ssh://git@h.example/x http://h.example:80/y@z");
  EXPECT_EQ(without_logins("ssh://git:word@h.example `http://[::1]:80/a` https://a:b@c@d, x"),
            "ssh://***@h.example `http://[::1]:80/a` https://***@d, x");
}

TEST_F(RequirementFilesTest, MistakesInLinesStandAtTheirPlace) {
  EXPECT_EQ(refused_line("numpy\nscipy=1\n"),
            "requirements-invalid r.txt:2:6: `=` is not a version operator; did you mean `==`?\n"
            "    scipy=1\n"
            "         ^");
  EXPECT_EQ(refused_line("a \\\n  >2,\\\n  ?3\n"),
            "requirements-invalid r.txt:3:3: `?3` is not a version specifier (as in `>=2.9`)\n"
            "      ?3\n"
            "      ^");
  const auto says = [&](const std::string& text, std::string_view place, std::string_view words) {
    const std::string found = refused_line(text);
    EXPECT_TRUE(found.starts_with("requirements-invalid r.txt:" + std::string(place) + ": "))
        << found;
    EXPECT_NE(found.find(words), std::string::npos) << found;
  };
  says("a\n  --pypi-url https://mirror.example/simple", "2:3", "`sources: {pypi: […]}`");
  says("-i https://me:secret@mirror.example/simple", "1:4", "must not hold a login");
  says("--find-links \"./nowhere", "1:14", "a quote is not closed");
  says("a\n--extra-index-url=ftp://mirror.example", "2:19", "is no URL that starts with");
  says("-e .", "1:4", "`.` does not tell whose it is: write `NAME @ .`");
  says("./wheels/a.whl", "1:1", "say which package that is: `NAME @ ./wheels/a.whl`");
  says("a @ https://mirror.example/page", "1:5", "leads to no wheel");
  says("a @ https://me:word@mirror.example/a.whl", "1:5", "leave the login out");
  says("a @ /srv/a", "1:5", "the path is absolute");
  says("a @ ./b --hash=sha256:" + kOne, "1:9", "or the address of its file");
  says("--requiremnt x", "1:1", "did you mean `--requirement`?");
  says("a b", "1:3", "`b` is not a version specifier");
  says("a ; sys_platform = 'linux'", "1:18", "did you mean `==`?");
  says("a ; platform == 'linux'", "1:5", "markers have no variable `platform`");
  says("a ; (os_name == 'nt' or\\\n extra in \"b\"", "2:14", "`)` is missing");
  says("a ; os_name not 'nt'", "1:17", "`in` is missing");
  says("a ; os_name == 'nt' and", "1:24", "a marker compares");
  says("a==${VERSION}", "1:4", "environment variables");
  says("a>=1 --hash=sha256:" + kOne, "1:6", "write its version with `==`");
  says("a==1 --hash=sha256:zz", "1:13", "64 lower-case hex digits");
  says("a==1 --hash=md5:00", "1:6", "no `sha256`");
  says("--hash=sha256:" + kOne, "1:1", "after the requirement");
  says("-r", "1:1", "a value is missing after `--requirement`");
  says("-r https://mirror.example/r.txt", "1:4", "is on the network");
  says("-r ../r.txt", "1:4", "leads out of the recipe's folder");
  says("-r absent.txt", "1:4", "`absent.txt` does not exist");
  says("-r r.txt", "1:4", "in a circle");
  says("a\n\xFF", "2:1", "not UTF-8");
  put("c.txt", "a[b]");
  EXPECT_NE(refused_line("-c c.txt").find("c.txt:1:1: a constraint is on a package"),
            std::string::npos);
}

TEST_F(RequirementFilesTest, FilesStayInTheRecipesFolder) {
  put("sub/r.txt", "a");
  EXPECT_EQ(lists("./sub//r.txt").requirement_texts(), (Strings{"a"}));
  const auto says = [&](const std::string& value, std::string_view words) {
    const std::string found = refused(value);
    EXPECT_TRUE(found.starts_with("recipe-invalid recipe.yaml:3:")) << found;
    EXPECT_NE(found.find(words), std::string::npos) << found;
  };
  says("../r.txt", "leads out through `..`");
  says("/r.txt", "is absolute");
  says("sub/s.txt", "`sub/s.txt` does not exist; did you mean `r.txt`?");
  says("sub", "`sub` is no file");
  fs::create_symlink("r.txt", folder_.path() / "sub/link.txt");
  says("sub/link.txt", "is reached through a link: write `sub/r.txt`");
  says("poetry.lock", "`poetry.lock` is not supported: export");
  says("other.toml", "`other.toml` is no file of requirements");
  says("\"sub/r.txt[a]\"", "has no extras or groups");
  says("{files: r.txt}", "did you mean `file`?");
  says("{extras: [a]}", "`file` is missing");
  says("\"pyproject.toml[a b]\"", "`a b` is not the name of an extra or group");
  says("[[r.txt]]", "`requirements` is a list of files");
}

TEST_F(RequirementFilesTest, PyprojectWithExtrasAndGroups) {
  put("pyproject.toml",
      "[project]\nname = \"My.App\"\nrequires-python = \">=3.10\"\n"
      "dependencies = [\"numpy>=2\"]\n"
      "[project.optional-dependencies]\n"
      "train = [\"torch\", \"my-app[viz] ; sys_platform == 'linux'\"]\n"
      "viz = [\"matplotlib ; python_version < '4'\"]\n"
      "never = [\"x\"]\n"
      "[dependency-groups]\n"
      "Dev = [\"pytest\", {include-group = \"lint\"}]\n"
      "lint = [\"ruff\"]\n"
      "[tool.uv]\nconstraint-dependencies = [\"numpy<3\"]\n"
      "[tool.uv.sources]\nunused = {git = \"https://example.org/x\"}\n");
  const Strings with_extras = {"matplotlib ; (sys_platform == 'linux') and (python_version < '4')",
                               "numpy>=2", "torch"};
  EXPECT_EQ(lists("pyproject.toml").requirement_texts(), (Strings{"numpy>=2"}));
  EXPECT_EQ(lists("\n  - pyproject.toml[Train]").requirement_texts(), with_extras);
  const RequirementLists found = lists("{file: pyproject.toml, extras: [train], groups: [dev]}");
  EXPECT_EQ(found.constraint_texts(), (Strings{"Python >=3.10", "numpy<3"}));
  Strings all = with_extras;
  all.insert(all.begin() + 2, {"pytest", "ruff"});
  EXPECT_EQ(found.requirement_texts(), all);

  EXPECT_EQ(refused("{file: pyproject.toml, extras: [trian]}"),
            "recipe-invalid recipe.yaml:3:47: `pyproject.toml` has no extra `trian`; did you mean "
            "`train`?\n"
            "    requirements: {file: pyproject.toml, extras: [trian]}\n"
            "                                                  ^");
  EXPECT_NE(refused("{file: pyproject.toml, groups: [x]}").find("no group `x`"), std::string::npos);
}

TEST_F(RequirementFilesTest, AddressesInLines) {
  put("libs/x/pyproject.toml", "[project]\nname = \"My-X\"\n");
  put("old/setup.cfg", "[options]\nname = no\n[metadata]\nname = old_one\n");
  put("req/all.txt",
      "./libs/x[dev] ; python_version > '3'\n-e ./old\n-e git+https://h.example/t/y@v1#egg=y\n"
      "z @ file:../z\n./dist/a-1.5.tar.gz --hash=sha256:" +
          kOne +
          "\n"
          "b @ https://h.example/b-2-py3-none-any.whl --hash=sha256:" +
          kTwo + "\n");
  const RequirementLists found = lists("req/all.txt");
  EXPECT_EQ(found.requirement_texts(),
            (Strings{"My-X[dev] @ ./libs/x ; python_version > '3'", "a @ ./dist/a-1.5.tar.gz",
                     "b @ https://h.example/b-2-py3-none-any.whl", "old_one @ ./old",
                     "y @ git+https://h.example/t/y@v1", "z @ ../z"}));
  EXPECT_TRUE(found.hashes.at({"a", "1.5"}).sha256.contains(kOne));
  EXPECT_TRUE(found.hashes.at({"b", "2"}).sha256.contains(kTwo));
}

TEST_F(RequirementFilesTest, Utf16AndFoldersWithoutADot) {
  put("libs/x/setup.py", "from setuptools import setup; setup(name='my_x')");
  std::string text = "\xFF\xFE";
  for (const char c : std::string("six==1.17.0\r\nlibs/x\r\n")) text += std::string{c, '\0'};
  put("requirements.txt", text);
  EXPECT_EQ(lists("requirements.txt").requirement_texts(),
            (Strings{"my_x @ ./libs/x", "six==1.17.0"}));
}

TEST_F(RequirementFilesTest, AddressesInProjectsAndTheirLocks) {
  const std::string commit(40, 'c');
  put("app/pyproject.toml",
      "[project]\ndependencies = [\"a>=1\", \"b\", \"c[x]\", \"d @ file:../d\", \"e\"]\n"
      "[tool.uv.sources]\na = {git = \"https://h.example/a\", branch = \"dev\", subdirectory = "
      "\"py\"}\nb = {path = \"libs/b\", editable = true}\n"
      "c = {url = \"https://h.example/c-1-py3-none-any.whl\"}\n");
  EXPECT_EQ(lists("app/pyproject.toml").requirement_texts(),
            (Strings{"a @ git+https://h.example/a@dev#subdirectory=py", "b @ ./app/libs/b",
                     "c[x] @ https://h.example/c-1-py3-none-any.whl", "d @ ./d", "e"}));
  put("app/pylock.toml",
      "lock-version = \"1.0\"\ncreated-by = \"t\"\n"
      "[[packages]]\nname = \"a\"\nvcs = {type = \"git\", url = \"https://h.example/a\", "
      "requested-revision = \"main\", commit-id = \"" +
          commit +
          "\"}\n"
          "[[packages]]\nname = \"b\"\ndirectory = {path = \"../b\", editable = true}\n"
          "[[packages]]\nname = \"c\"\narchive = {url = \"https://h.example/c-1.tar.gz\", hashes = "
          "{sha256 = \"" +
          kOne + "\"}}\n");
  const RequirementLists locked = lists("app/pylock.toml");
  EXPECT_EQ(locked.requirement_texts(), (Strings{"a @ git+https://h.example/a@" + commit, "b @ ./b",
                                                 "c @ https://h.example/c-1.tar.gz"}));
  EXPECT_TRUE(locked.hashes.at({"c", "1"}).sha256.contains(kOne));
  put("app/uv.lock",
      "version = 1\n[[package]]\nname = \"app\"\nversion = \"1\"\nsource = {editable = \".\"}\n"
      "dependencies = [{name = \"a\"}, {name = \"b\"}]\n"
      "[[package]]\nname = \"a\"\nversion = \"2\"\nsource = {git = "
      "\"https://h.example/a?subdirectory=py&rev=main#" +
          commit +
          "\"}\n"
          "dependencies = [{name = \"c\"}]\n"
          "[[package]]\nname = \"b\"\nsource = {directory = \"libs/b\"}\n"
          "[[package]]\nname = \"c\"\nversion = \"3\"\nsource = {path = "
          "\"c-3-py3-none-any.whl\"}\nwheels = [{filename = \"c-3-py3-none-any.whl\", hash = "
          "\"sha256:" +
          kTwo + "\"}]\n");
  const RequirementLists uv = lists("app/uv.lock");
  EXPECT_EQ(uv.requirement_texts(), (Strings{"a", "b"}));
  EXPECT_EQ(uv.constraint_texts(),
            (Strings{"a @ git+https://h.example/a@" + commit + "#subdirectory=py",
                     "b @ ./app/libs/b", "c @ ./app/c-3-py3-none-any.whl"}));
  EXPECT_TRUE(uv.hashes.at({"c", "3"}).sha256.contains(kTwo));
}

TEST_F(RequirementFilesTest, PyprojectThatCannotBeReadWithoutRunningOrGuessing) {
  const auto says = [&](const std::string& text, std::string_view place, std::string_view words) {
    put("pyproject.toml", text);
    const std::string found = refused("pyproject.toml");
    EXPECT_TRUE(found.starts_with(std::string(place) + ": ")) << found;
    EXPECT_NE(found.find(words), std::string::npos) << found;
  };
  const std::string at = "requirements-invalid pyproject.toml:";
  says("[project]\nname = \"a\"\ndynamic = [\"version\", \"dependencies\"]\n", at + "3:23",
       "only the project's build knows");
  says("[project]\ndependencies = [\n  \"numpy\",\n  \"scipy=1\"]\n", at + "4:9",
       "did you mean `==`?");
  says("[project]\ndependencies = [\"torch\"]\n[tool.uv.sources]\ntorch = {index = \"cpu\"}\n",
       at + "4:9", "there is no `[[tool.uv.index]]` of the name `cpu`");
  says("[project]\ndependencies = [\"a\"]\nname = a\n", at + "3:8", "");
  says("[tool.poetry]\nname = \"a\"\n", at + "1:1", "Poetry's own tables");
  says("[build-system]\n", "recipe-invalid recipe.yaml:3:15", "no `[project]` table");
}

TEST_F(RequirementFilesTest, PylockKeepsVersionsAndHashes) {
  put("pylock.toml",
      "lock-version = \"1.0\"\ncreated-by = \"t\"\nrequires-python = \">=3.9\"\n"
      "[[packages]]\nname = \"numpy\"\nversion = \"2.1.0\"\nmarker = \"python_version < '4'\"\n"
      "wheels = [{name = \"numpy-2.1.0-py3-none-any.whl\", hashes = {sha256 = \"" +
          kOne +
          "\"}}]\n"
          "[[packages]]\nname = \"six\"\nversion = \"1.16\"\n");
  const RequirementLists found = lists("[pylock.toml]");
  EXPECT_EQ(found.requirement_texts(),
            (Strings{"numpy==2.1.0 ; python_version < '4'", "six==1.16"}));
  EXPECT_EQ(found.constraint_texts(), (Strings{"Python >=3.9"}));
  EXPECT_EQ(found.hashes.at({"numpy", "2.1.0"}).sha256, (std::set<std::string>{kOne}));
  EXPECT_FALSE(found.hashes.contains({"six", "1.16"}));

  put("pylock.dev.toml",
      "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\nversion = \"1\"\n"
      "marker = \"'dev' in dependency_groups\"\n");
  EXPECT_TRUE(
      refused("pylock.dev.toml").starts_with("requirements-invalid pylock.dev.toml:5:10: "));
  const auto says = [&](const std::string& version, const std::string& hashes) {
    put("pylock.toml", "lock-version = \"1.0\"\n[[packages]]\nname = \"six\"\nversion = \"" +
                           version + "\"\nsdist = {name = \"s\", hashes = {" + hashes +
                           "}}\nwheels = [{name = \"w\", hashes = {sha512 = \"00\"}}]\n");
    return refused("pylock.toml");
  };
  for (const char* version : {"1.16.*", "1.16,>1", "1.16; os_name == 'nt'", ">1", ""}) {
    EXPECT_TRUE(says(version, "").starts_with("requirements-invalid pylock.toml:4:11: "))
        << version;
  }
  const std::string only_other = says("1.16", "sha384 = \"00\"");
  EXPECT_TRUE(only_other.starts_with("requirements-invalid pylock.toml:5:")) << only_other;
  EXPECT_NE(only_other.find("there is no `sha256` among the hashes of `six`"), std::string::npos);
  EXPECT_EQ(says("1.16", "sha256 = \"" + kOne + "\""), "nothing");

  put("pylock.toml", "lock-version = \"2.0\"\n");
  EXPECT_TRUE(refused("pylock.toml").starts_with("requirements-invalid pylock.toml:1:16: "));
}

constexpr std::string_view kUvLock =
    "version = 1\nrevision = 3\nrequires-python = \">=3.10\"\n"
    "[[package]]\nname = \"app\"\nversion = \"0.1\"\nsource = { virtual = \".\" }\n"
    "dependencies = [{ name = \"a\", extra = [\"fast\"] }, "
    "{ name = \"b\", marker = \"sys_platform == 'linux'\" }]\n"
    "[package.optional-dependencies]\nviz = [{ name = \"d\" }]\n"
    "[package.dev-dependencies]\ndev = [{ name = \"c\" }]\n"
    "[[package]]\nname = \"a\"\nversion = \"1.0\"\nsource = { registry = \"https://x.example\" }\n"
    "wheels = [{ url = \"https://x.example/a-1.0-py3-none-any.whl\", hash = \"sha256:"
    "1111111111111111111111111111111111111111111111111111111111111111\" }]\n"
    "[package.optional-dependencies]\nfast = [{ name = \"e\" }]\n"
    "[[package]]\nname = \"b\"\nversion = \"2.0\"\nsource = { registry = \"https://x.example\" }\n"
    "resolution-markers = [\"python_version < '3.12'\", \"os_name == 'nt'\"]\n"
    "[[package]]\nname = \"b\"\nversion = \"2.1\"\nsource = { registry = \"https://x.example\" }\n"
    "[[package]]\nname = \"c\"\nversion = \"3\"\nsource = { virtual = \"c\" }\n"
    "[[package]]\nname = \"d\"\nversion = \"4\"\nsource = { registry = \"https://x.example\" }\n"
    "[[package]]\nname = \"e\"\nversion = \"5\"\nsource = { registry = \"https://x.example\" }\n";

TEST_F(RequirementFilesTest, UvLockWithGroupsOfTheProjectsOwnExtras) {
  const std::string registry = "source = { registry = \"https://x.example\" }\n";
  put("uv.lock",
      "version = 1\n[[package]]\nname = \"app\"\nversion = \"1\"\nsource = { virtual = \".\" }\n"
      "dependencies = [{ name = \"a\" }]\n[package.optional-dependencies]\n"
      "test = [{ name = \"b\", marker = \"python_version < '4'\" }]\n"
      "all = [{ name = \"app\", extra = [\"test\", \"all\"] }, { name = \"c\" }]\n"
      "[package.dev-dependencies]\n"
      "dev = [{ name = \"app\", extra = [\"all\"], marker = \"os_name == 'posix'\" }]\n"
      "[[package]]\nname = \"a\"\nversion = \"1\"\n" +
          registry +
          "dependencies = [{ name = \"app\" }]\n"
          "[[package]]\nname = \"b\"\nversion = \"2\"\n" +
          registry + "[[package]]\nname = \"c\"\nversion = \"3\"\n" + registry);
  EXPECT_EQ(lists("{file: uv.lock, groups: [dev]}").requirement_texts(),
            (Strings{"a", "b ; (os_name == 'posix') and (python_version < '4')",
                     "c ; os_name == 'posix'"}));
  EXPECT_EQ(lists("uv.lock[all]").requirement_texts(),
            (Strings{"a", "b ; python_version < '4'", "c"}));
  EXPECT_EQ(lists("uv.lock[all]").constraint_texts(), (Strings{"a==1", "b==2", "c==3"}));
}

TEST_F(RequirementFilesTest, UvLockWithOtherHashesAloneIsRefused) {
  std::string text{kUvLock};
  const std::size_t hash = text.find("sha256:");
  text.replace(hash, 7, "sha512:");
  put("uv.lock", text);
  EXPECT_NE(refused("uv.lock").find("there is no `sha256` among the hashes of `a`"),
            std::string::npos);
}

TEST_F(RequirementFilesTest, UvLockPinsWhatItsProjectNeeds) {
  put("uv.lock", std::string(kUvLock));
  const RequirementLists found = lists("uv.lock");
  EXPECT_EQ(found.requirement_texts(), (Strings{"a[fast]", "b ; sys_platform == 'linux'"}));
  EXPECT_EQ(found.constraint_texts(),
            (Strings{"Python >=3.10", "a==1.0",
                     "b==2.0 ; (python_version < '3.12') or (os_name == 'nt')", "b==2.1", "e==5"}));
  EXPECT_EQ(found.hashes.size(), 1U);
  EXPECT_EQ(lists("uv.lock[viz]").requirement_texts(),
            (Strings{"a[fast]", "b ; sys_platform == 'linux'", "d"}));
  EXPECT_NE(refused("{file: uv.lock, groups: [dev]}").find("`c` comes from no index"),
            std::string::npos);
  EXPECT_NE(refused("{file: uv.lock, groups: [dve]}").find("did you mean `dev`?"),
            std::string::npos);
  put("uv.lock", "version = 2\n");
  EXPECT_TRUE(refused("uv.lock").starts_with("requirements-invalid uv.lock:1:11: "));
  put("uv.lock", "version = 1\n");
  EXPECT_NE(refused("uv.lock").find("is of no project"), std::string::npos);
}

TEST_F(RequirementFilesTest, AreInTheLockAndInItsDifferences) {
  const auto locked = [&](const std::string& text) {
    put("r.txt", text);
    const Recipe read = recipe("[r.txt]");
    Lock lock;
    lock.request = request_of(read);
    lock.settings = settings_of(read);
    lock.distribution = "debian";
    lock.suite = "bookworm";
    lock.revision = least_revision(lock);
    EXPECT_EQ(parse_lock(render_lock(lock), "r.lock"), lock);
    return lock;
  };
  const Lock before = locked("numpy>=2\nsix==1 --hash=sha256:" + kOne);
  EXPECT_EQ(before.revision, 2);
  EXPECT_NE(render_lock(before).find("requirements = [\n  \"numpy>=2\",\n  \"six==1\",\n]\n"),
            std::string::npos);
  // Comments, order and layout are no difference.
  EXPECT_EQ(locked("# x\nsix == 1 \\\n --hash=sha256:" + kOne + "\nnumpy >= 2\n"), before);
  const Lock after = locked("numpy>=2.1\nscipy\nsix==1 --hash=sha256:" + kTwo);
  const std::vector<std::string> lines = lock_differences(before, after);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "requirement numpy: numpy>=2 → numpy>=2.1");
  EXPECT_EQ(lines[1], "requirement scipy: none → scipy");
  EXPECT_TRUE(lines[2].starts_with("hashes in `requirements`: ")) << lines[2];
  EXPECT_EQ(locked("# nothing\n").revision, 1);  // what an older one has words for
}

TEST_F(RequirementFilesTest, StayWhenThePackagesOfARecipeAreEdited) {
  put("r.txt", "numpy");
  const RecipeEdit edit = add_packages(recipe("[r.txt]"), PackageList::packages, {"scipy"});
  EXPECT_EQ(edit.recipe.listed.requirement_texts(), (Strings{"numpy"}));
  EXPECT_TRUE(edit.recipe.wants_python());
}

}  // namespace
}  // namespace mlenv
