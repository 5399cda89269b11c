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

// Each a way to read all files of a folder: what is listed for `install_requires`, and for extras.
TEST(SetupPy, FilesThatItsCodeListsAreKnownByTheirFolder) {
  struct Case {
    const char* text;
    const char* listed;  ///< `PATTERN ONLY`
    const char* extras;
  };
  for (const Case& one :
       {Case{"from glob import glob\nreqs = []\nfor path in glob('requirements/*.txt'):\n"
             "    with open(path) as f:\n        reqs += f.read().split('\\n')\n"
             "setup(install_requires=reqs)\n",
             "requirements/*.txt ", ""},
        Case{"extras = {}\nfor name in os.listdir('requirements'):\n"
             "    extras[name[:-4]] = read(name)\n"
             "setup(install_requires=extras.pop('base'), extras_require=extras)\n",
             "requirements/* base", "requirements/*"},
        Case{"here = Path(__file__).parent\nFOLDER = here / 'reqs'\ndef all_extras():\n"
             "    return {p.stem: lines(p) for p in FOLDER.glob('*.in')}\n"
             "extras = all_extras()\n"
             "setup(install_requires=['six'], extras_require=extras)\n",
             "", "reqs/*.in"},
        Case{"setup(install_requires=[x for p in (here / 'deps').iterdir() for x in open(p)])\n",
             "deps/* ", ""},
        Case{"setup(install_requires=sum([r(p) for p in glob.glob(f'{here}/a/*.txt')], []))\n",
             "a/*.txt ", ""},
        Case{"for path in glob('src/*.cpp'):\n    sources.append(path)\n"
             "setup(install_requires=['six'], ext_modules=[sources])\n",
             "", ""},
        Case{"reqs = [x for p in glob('../*.txt') for x in open(p)]\n"
             "more = [x for p in glob(folder + '/*.txt') for x in open(p)]\n"
             "setup(install_requires=reqs + more)\n",
             "", ""}}) {
    const SetupFacts facts = read_setup_py(one.text);
    std::string listed;
    for (const auto& each : facts.listed) listed += each.pattern + ' ' + each.only;
    std::string extras;
    for (const auto& each : facts.listed_extras) extras += each.pattern;
    EXPECT_EQ(listed, one.listed) << one.text;
    EXPECT_EQ(extras, one.extras) << one.text;
    EXPECT_TRUE(facts.conditional.empty()) << one.text;
  }
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

TEST(SetupPy, WhatIsPlainOfASumIsTaken) {
  const SetupFacts facts = read_setup_py(
      "reqs: list[str] = []\nif linux:\n    reqs.append('triton==2')\nreqs += ['six']\n"
      "reqs.extend(['idna'])\nsetup(name='x', install_requires=reqs + [str(r) for r in\n"
      "    parse(open('requirements.txt'))])\n");
  ASSERT_TRUE(facts.requires_);
  EXPECT_EQ(facts.requires_->items, (Strings{"six", "idna"}));
  EXPECT_TRUE(facts.computed);
  EXPECT_EQ(facts.files, Strings{"requirements.txt"});
  ASSERT_EQ(facts.conditional.size(), 1U);
  EXPECT_EQ(facts.conditional.front(), (std::pair<std::string, int>{"triton==2", 3}));
}

TEST(SetupPy, AFunctionReadsTheFileThatItIsGiven) {
  const SetupFacts facts = read_setup_py(
      "def parse(path):\n    return open(path).read()\n\nsetup(\n"
      "    install_requires=parse('requirements/base.txt'),\n"
      "    extras_require={'dev': parse('requirements/dev.txt')})\n");
  EXPECT_EQ(facts.files, Strings{"requirements/base.txt"});
  EXPECT_EQ(facts.extras.count("dev"), 1U);
  const SetupFacts keys = read_setup_py("e = {}\ne['gg'] = ['x']\nsetup(extras_require=e)\n");
  EXPECT_EQ(keys.extras.count("gg"), 1U);
}

TEST(SetupPy, KeysOfMapsAreLookedUp) {
  const SetupFacts facts = read_setup_py(
      "deps = {'install': ['numpy>=1'], 'test': ['pytest']}\ndeps['gpu'] = ['cupy']\n"
      "if has_torch:\n    deps['install'].append('ops==2')\ndeps['install'] += ['six']\n"
      "setup(install_requires=deps['install'] + deps['gpu'])\n");
  ASSERT_TRUE(facts.requires_);
  EXPECT_EQ(facts.requires_->items, (Strings{"numpy>=1", "six", "cupy"}));
  EXPECT_FALSE(facts.computed);
  ASSERT_EQ(facts.conditional.size(), 1U);
  EXPECT_EQ(facts.conditional.front(), (std::pair<std::string, int>{"ops==2", 4}));
  EXPECT_TRUE(
      read_setup_py("d = {'a': ['x']}\nd.update(b)\nsetup(install_requires=d['a'])").computed);
  EXPECT_TRUE(read_setup_py("d = {'a': ['x']}\nsetup(install_requires=d['b'])").computed);
  EXPECT_TRUE(read_setup_py("d[0] = ['x']\nsetup(install_requires=d['a'])").computed);
}

TEST(SetupPy, ATableOfAListIsLookedUpByName) {
  const std::string table =
      "_deps = ['tqdm>=4', 'hub[cli]>=1,<2', 'x @ git+https://git.example/x.git@main']\n"
      "deps = {b: a for a, b in (re.findall(r'^(([^!=<>]+)(.*)?$)', x)[0] for x in _deps)}\n";
  const SetupFacts facts = read_setup_py(
      table +
      "setup(install_requires=[deps['hub'], deps['tqdm'] + \";python_version<'9'\", deps['x']])");
  ASSERT_TRUE(facts.requires_);
  EXPECT_EQ(facts.requires_->items, (Strings{"hub[cli]>=1,<2", "tqdm>=4;python_version<'9'",
                                             "x @ git+https://git.example/x.git@main"}));
  EXPECT_TRUE(read_setup_py(table + "setup(install_requires=[deps['y']])").computed);
  // A value of its own for each name, and not the list's.
  EXPECT_TRUE(read_setup_py("n = ['a']\nd = {x: x + '==1' for x in n}\n"
                            "setup(install_requires=[d['a']])")
                  .computed);
}

TEST(SetupPy, TextsAreFilledWithPlainValues) {
  const SetupFacts facts = read_setup_py(
      "V = '0.4.6'\nsetup(name='{}-x'.format('a'), install_requires=[f'jax >= {V}', "
      "'flax==%s' % V, 'a==%s,<%s' % (V, '2'), 'b=={}'.format(V), f'{{c}}' f'd'])");
  EXPECT_EQ(facts.name, "a-x");
  ASSERT_TRUE(facts.requires_);
  EXPECT_EQ(facts.requires_->items,
            (Strings{"jax >= 0.4.6", "flax==0.4.6", "a==0.4.6,<2", "b==0.4.6", "{c}d"}));
  for (const char* text :
       {"f'jax=={V}'", "f'jax=={V!r}'", "f'jax=={'", "'x=={v}'.format(v='1')", "'x==%d' % 1",
        "'x=={}'.format('1', '2')", "'x==%s' % (", "'x=={}'.format("}) {
    EXPECT_TRUE(read_setup_py(std::string("setup(install_requires=[") + text + "])").computed)
        << text;
  }
}

TEST(SetupPy, WhatALoopAddsIsToldByItsTexts) {
  const SetupFacts facts = read_setup_py(
      "reqs = parse()\ntry:\n    import cv2\nexcept ImportError:\n    ONE = [('a>=3', 'b>=3')]\n"
      "    for main, other in ONE:\n        reqs.append(choose(main, other))\n"
      "setup(install_requires=reqs)\n");
  ASSERT_EQ(facts.conditional.size(), 2U);
  EXPECT_EQ(facts.conditional.front(), (std::pair<std::string, int>{"a>=3", 5}));
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
  EXPECT_EQ(read_setup_cfg("[options]\ninstall_requires = file: a.txt, b.txt\n").files,
            (Strings{"a.txt", "b.txt"}));
}

}  // namespace
}  // namespace mlenv
