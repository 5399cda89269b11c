#include "builder/imports/import_trial.hpp"

#include <gtest/gtest.h>

#include "builder/imports/import_once.hpp"
#include "builder/imports/top_levels.hpp"

namespace mlenv {
namespace {

using ImportNames = std::vector<std::string>;
constexpr std::chrono::seconds kLimit{7};

std::string failed_answer(std::string_view error, std::string_view module) {
  std::string said = "failed";
  return said.append(1, '\0').append(error).append(1, '\0').append(module);
}

TEST(ImportTrial, AnImportHasToSayThatItCameInAndToEndWell) {
  EXPECT_EQ(judged_import({"imported", false, {}}, kLimit).error, "");
  EXPECT_EQ(judged_import({"", false, {0, false}}, kLimit).error, "it ended Python with status 0");
  EXPECT_EQ(judged_import({"imported", false, {3, false}}, kLimit).error,
            "it ended Python with status 3");
  EXPECT_EQ(judged_import({"imported", false, {134, true}}, kLimit).error, "ended by SIGABRT");
  EXPECT_EQ(judged_import({"imported", true, {}}, kLimit).error, "no end within 7 seconds");
  EXPECT_EQ(judged_import({"importedimported", false, {}}, kLimit).error,
            "it ended Python with status 0");
}

TEST(ImportTrial, WhatPythonSaysIsOneHarmlessBoundedLine) {
  const ImportOutcome outcome = judged_import(
      {failed_answer("ModuleNotFoundError: No module named 'yaml'", "yaml"), false, {}}, kLimit);
  EXPECT_EQ(outcome.error, "ModuleNotFoundError: No module named 'yaml'");
  EXPECT_EQ(outcome.module, "yaml");
  EXPECT_EQ(judged_import({failed_answer("E: \x1b[2J\n", ""), false, {}}, kLimit).error,
            "E: \\x1b[2J\\n");
  EXPECT_LT(
      judged_import({failed_answer(std::string(9000, 'x'), ""), false, {}}, kLimit).error.size(),
      400U);
}

TEST(ImportTrial, TheLibraryThatAMessageNamesIsFound) {
  FailedImport one;
  one.error = "OSError: libgomp.so.1: cannot open shared object file: No such file or directory";
  find_cause(one);
  EXPECT_EQ(one.library, "libgomp.so.1");
}

TEST(ImportTrial, NamesAreThoseThatAnImportStatementTakes) {
  EXPECT_EQ(top_levels("numpy/__init__.py,sha256=x,1\r\nnumpy/core/__init__.py,,\n"
                       "numpy_helper.py,,\n_private.py,,\n_hidden/__init__.py,,\n"
                       "numpy-2.1.dist-info/METADATA,,\n../../../bin/f2py,,\n"
                       "cv.cpython-311-x86_64-linux-gnu.so,,\nlibx.so,,\ntests/__init__.py,,\n"),
            (ImportNames{"cv", "numpy", "numpy_helper"}));
  EXPECT_EQ(
      top_levels("google/cloud/storage/__init__.py,,\ngoogle/cloud/storage/v1/__init__.py,,\n"),
      ImportNames{"google.cloud.storage"});
  EXPECT_EQ(top_levels("\"odd,name/__init__.py\",,\n\"a\"\"b.py\",,\n\"plain.py\",,\n"),
            ImportNames{"plain"});
  EXPECT_EQ(top_levels("mpl_toolkits/tests/__init__.py,,\nmpl_toolkits/mplot3d/__init__.py,,\n"),
            ImportNames{"mpl_toolkits.mplot3d"});
  EXPECT_EQ(top_levels("a b/__init__.py,,\n9x.py,,\nos.path.py,,\n\n"), ImportNames{});
}

}  // namespace
}  // namespace mlenv
