#include "recipes/import_statements.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

using Statements = std::vector<ImportStatement>;

TEST(ImportStatements, ThoseAtTheBeginningOfALine) {
  EXPECT_EQ(
      import_statements("import a.b as c, d\nfrom e.f import g as h, i  # j\nimport k;x = 1\n"),
      (Statements{{"a.b", {}, 1}, {"d", {}, 1}, {"e.f", {"g", "i"}, 2}, {"k", {}, 3}}));
  EXPECT_EQ(import_statements("try:\n    import a\nexcept ImportError:\n    a = None\n"),
            Statements{});
  EXPECT_EQ(
      import_statements("from . import a\nfrom .b import c\nimportant = 1\nfrom b import *\n"),
      (Statements{{"b", {}, 4}}));
}

TEST(ImportStatements, OverSeveralLines) {
  EXPECT_EQ(
      import_statements("from a import (  # b\n    c,\n    d as e,\n)\nimport f, \\\n    g\n"),
      (Statements{{"a", {"c", "d"}, 1}, {"f", {}, 5}, {"g", {}, 5}}));
  EXPECT_EQ(import_statements("from a import (b"), (Statements{{"a", {"b"}, 1}}));
}

TEST(ImportStatements, NotThoseOfAText) {
  EXPECT_EQ(import_statements("\"\"\"Help.\n\nimport a\n\"\"\"\nx = '''y'''\nimport b\n"),
            (Statements{{"b", {}, 6}}));
  EXPECT_EQ(import_statements("x = '''\nfrom the import of\n'''\nfrom here on import is\n"),
            Statements{});
  EXPECT_EQ(import_statements("# \"\"\"\nimport a\r\n"), (Statements{{"a", {}, 2}}));
}

}  // namespace
}  // namespace mlenv
