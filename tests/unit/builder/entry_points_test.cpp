#include "builder/entry_points.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

TEST(EntryPoints, ReadsScriptsOfBothKindsAndNothingElse) {
  const auto points = parse_entry_points(
      "# comment\n[console_scripts]\none = pkg.mod:main\ntwo=pkg:Class.run [extra,other]\n"
      "[other.group]\nx = y:z\n[gui_scripts]\n three = a.b:c \r\n",
      "x.whl");
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].name, "one");
  EXPECT_EQ(points[0].module, "pkg.mod");
  EXPECT_EQ(points[1].attribute, "Class.run");
  EXPECT_EQ(points[2].name, "three");
}

TEST(EntryPoints, RefusesWhatIsNoFileNameOrReference) {
  for (const char* line : {"../evil = a:b", "a/b = c:d", ".. = a:b", "name = module", "name = :f",
                           "name = m:f();import os", "= a:b", "name"}) {
    EXPECT_THROW(
        (void)parse_entry_points(std::string("[console_scripts]\n") + line + "\n", "x.whl"), Error)
        << line;
  }
}

TEST(EntryPoints, ScriptImportsTheFirstNameAndCallsTheWhole) {
  const std::string script =
      entry_point_script({"two", "pkg", "Class.run"}, "#!/opt/venv/bin/python");
  EXPECT_TRUE(script.starts_with("#!/opt/venv/bin/python\n"));
  EXPECT_NE(script.find("from pkg import Class\n"), std::string::npos);
  EXPECT_NE(script.find("sys.exit(Class.run())\n"), std::string::npos);
}

}  // namespace
}  // namespace mlenv
