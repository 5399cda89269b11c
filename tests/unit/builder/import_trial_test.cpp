#include "builder/imports/import_trial.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

TEST(ImportTrial, TellsWhatFailedAndWhatItLacks) {
  const ImportTrial trial = read_import_trial(
      R"({"package": "numpy", "version": "2.1", "import": "numpy", "error": "", "module": ""}
{"package": "lightgbm", "version": "4.6.0", "import": "lightgbm", "error": "OSError: libgomp.so.1: cannot open shared object file: No such file or directory", "module": ""}
{"package": "x", "version": "1", "import": "x", "error": "ModuleNotFoundError: No module named 'yaml'", "module": "yaml"}
{"package": "tensorrt", "version": "10", "import": "tensorrt", "error": "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", "module": ""}
)",
      "the image");
  EXPECT_EQ(trial.imported, 1U);
  ASSERT_EQ(trial.failed.size(), 2U);
  EXPECT_EQ(trial.failed[0].library, "libgomp.so.1");
  EXPECT_EQ(trial.failed[1].module, "yaml");
  ASSERT_EQ(trial.without_gpu.size(), 1U);
  EXPECT_EQ(trial.without_gpu[0].import, "tensorrt");
}

TEST(ImportTrial, WhatIsNoAnswerIsRefused) {
  EXPECT_EQ(code_of([] { read_import_trial("Segmentation fault\n", "the image"); }),
            "imports-failed");
  EXPECT_EQ(code_of([] { read_import_trial("[1]\n", "the image"); }), "imports-failed");
}

}  // namespace
}  // namespace mlenv
