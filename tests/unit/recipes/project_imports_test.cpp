#include "recipes/project_imports.hpp"

#include <gtest/gtest.h>

#include "base/scratch_folder.hpp"

namespace mlenv {
namespace {

class ProjectImports : public ::testing::Test {
 protected:
  void has(const std::string& path, const std::string& text) {
    fs::create_directories((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text);
  }
  std::vector<std::string> found() const {
    std::vector<std::string> all;
    for (const ProjectImport& one : project_imports(folder_.path())) {
      all.push_back(one.file + ":" + one.statement.module);
    }
    return all;
  }
  ScratchFolder folder_;
};

TEST_F(ProjectImports, PackagesAloneAndEachOnce) {
  has("train.py", "import os\nimport torch\nfrom model.net import Net\nimport utils\nimport imp\n");
  has("model/net.py", "import torch\nimport torch.nn as nn\n");
  has("lib/utils.py", "");
  EXPECT_EQ(found(), (std::vector<std::string>{"model/net.py:torch", "model/net.py:torch.nn",
                                               "train.py:imp"}));
}

TEST_F(ProjectImports, NotOfTestsAndOtherEnvironments) {
  for (const char* path :
       {"tests/a.py", "test_b.py", "setup.py", ".hidden/c.py", "mine/pyvenv.cfg",
        "store/mlenv-store", "mine/lib/d.py", "store/f.py", "docs/conf.py", "e.txt"}) {
    has(path, "import torch\n");
  }
  EXPECT_EQ(found(), std::vector<std::string>{});
}

TEST_F(ProjectImports, CellsOfNotebooks) {
  has("a.ipynb", R"({"cells": [{"cell_type": "markdown", "source": ["import no"]},
    {"cell_type": "code", "source": ["!pip install six\n", "%matplotlib inline\n", "import six\n"]},
    {"cell_type": "code", "source": "if True:\n    import five\nimport seven"}]})");
  has("b.ipynb", "no json");
  has("c.ipynb", "[1]");
  EXPECT_EQ(found(), (std::vector<std::string>{"a.ipynb:six", "a.ipynb:seven"}));
}

}  // namespace
}  // namespace mlenv
