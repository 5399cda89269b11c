#include "recipes/setup_py.hpp"

#include <gtest/gtest.h>

#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

TEST(SetupPy, PlainWordsAreReadAndNothingIsRun) {
  const SetupFacts facts = read_setup_py(
      "import setuptools\nNAME = 'my' '-tool'  # why\nbase = [\"numpy>=1\", 'six']\n"
      "setuptools.setup(\n    name=NAME,\n    version=get_version(),\n"
      "    install_requires=base + ['tqdm'],\n    python_requires='>=3.8',\n"
      "    extras_require={'dev': ['black'], 'all': base},\n)\n");
  EXPECT_TRUE(facts.calls_setup);
  EXPECT_EQ(facts.name, "my-tool");
  EXPECT_EQ(facts.python, ">=3.8");
  ASSERT_TRUE(facts.requires_);
  EXPECT_EQ(facts.requires_->items, (Strings{"numpy>=1", "six", "tqdm"}));
  EXPECT_EQ(facts.requires_->line, 7);
  EXPECT_EQ(facts.extras.size(), 2U);
}

TEST(SetupPy, WhatItsCodeComputesIsTold) {
  const SetupFacts facts = read_setup_py(
      "with open('requirements.txt') as f:\n    required = f.read().splitlines()\n"
      "setup(name=f'{a}-x', install_requires=required)\n");
  EXPECT_EQ(facts.name, std::nullopt);
  EXPECT_FALSE(facts.requires_);
  EXPECT_TRUE(facts.computed);
  EXPECT_EQ(facts.files, Strings{"requirements.txt"});
  const SetupFacts function = read_setup_py(
      "def deps(path=\"requirements/base.txt\"):\n  return []\nsetup(name='x', "
      "install_requires=deps())");
  EXPECT_EQ(function.files, Strings{"requirements/base.txt"});
  EXPECT_EQ(read_setup_py("setup(**dict(name='y'))").name, "y");
  EXPECT_EQ(read_setup_py("kw = {'name': 'z'}\nsetup(**kw)").name, "z");
  EXPECT_FALSE(read_setup_py("def setup(name='x'): pass").calls_setup);
}

TEST(SetupPy, DamagedTextEnds) {
  for (const char* text :
       {"setup(", "setup(name=", "'", "\"\"\"", "a = a\nsetup(name=a)",
        "a = b\nb = a\nsetup(name=b)", "setup(name=[[[[", "\\", "setup(**", "setup(**{"}) {
    EXPECT_EQ(read_setup_py(text).name, std::nullopt) << text;
  }
}

TEST(SetupCfg, ItsOptionsAreRead) {
  const SetupFacts facts = read_setup_cfg(
      "[metadata]\nname = tool\n[options]\npython_requires = >=3.9\ninstall_requires =\n    "
      "numpy>=1\n"
      "    # no\n    six; python_version < '3'\n[options.extras_require]\ndev =\n    black\n");
  EXPECT_EQ(facts.name, "tool");
  EXPECT_EQ(facts.python, ">=3.9");
  ASSERT_TRUE(facts.requires_);
  EXPECT_EQ(facts.requires_->items, (Strings{"numpy>=1", "six; python_version < '3'"}));
  EXPECT_EQ(facts.extras.count("dev"), 1U);
  EXPECT_EQ(read_setup_cfg("[options]\ninstall_requires = file: requirements.txt\n").files,
            Strings{"requirements.txt"});
}

}  // namespace
}  // namespace mlenv
