#include "images/inspect/python_loads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "images/inspect/loaded_libraries.hpp"

namespace mlenv {
namespace {

using Loads = std::vector<LibraryLoad>;

TEST(PythonLoads, NamesGivenToCtypesAndCffiAreFound) {
  EXPECT_EQ(library_loads("import ctypes\n_lib = ctypes.CDLL('libgomp.so.1')\n"),
            (Loads{{true, {"libgomp.so.1"}}}));
  EXPECT_EQ(library_loads("x = ctypes.cdll.LoadLibrary(\n    find_library(\n  'magic'))\n"),
            (Loads{{true, {"magic"}}}));
  EXPECT_EQ(library_loads("cairo = dlopen(\n    ffi, ('cairo-2', 'cairo'),\n"
                          "    ('libcairo.so.2', 'libcairo.2.dylib', 'libcairo-2.dll'))\n"),
            (Loads{{true, {"cairo-2", "cairo", "libcairo.so.2"}}}));
}

TEST(PythonLoads, AFunctionOrATryMayGoOnWithoutIt) {
  EXPECT_EQ(library_loads("def load():\n    return CDLL('liba.so.1')\nCDLL('libb.so.1')\n"),
            (Loads{{false, {"liba.so.1"}}, {true, {"libb.so.1"}}}));
  EXPECT_EQ(library_loads("try:\n    a = CDLL('liba.so.1')\nexcept OSError:\n    a = None\n"),
            (Loads{{false, {"liba.so.1"}}}));
  EXPECT_EQ(
      library_loads("try:\n    for name in ('portaudio',  # usual\n                 'x.dll'):\n"
                    "        name = _find_library(name)\nexcept OSError:\n    raise\n"),
      (Loads{{false, {"portaudio"}}}));
  EXPECT_EQ(library_loads("if __name__ == '__main__':\n    CDLL('liba.so.1')\n"),
            (Loads{{false, {"liba.so.1"}}}));
}

TEST(PythonLoads, OtherSystemsCommentsAndTextsDoNotCount) {
  EXPECT_EQ(library_loads("if sys.platform == 'darwin':\n    CDLL('libobjc.so.1')\n"
                          "elif os.name == 'nt':\n    x = CDLL('liby.so.2')\n"),
            Loads{});
  EXPECT_EQ(library_loads("# CDLL('liba.so.1')\n'''\nCDLL('libb.so.1')\n'''\n"), Loads{});
  EXPECT_EQ(library_loads("def find_library(name='libx.so.1'):\n    pass\n"), Loads{});
  EXPECT_EQ(library_loads("windll.LoadLibrary('libx.so.1')\nCDLL('x.dll')\nCDLL(f'lib{a}.so.1')\n"),
            Loads{});
}

TEST(PythonLoads, FilesBesideTheModuleAreItsOwn) {
  EXPECT_EQ(library_loads("CDLL(os.path.join(here, 'libx.so.1'))\n"
                          "CDLL(str(Path(__file__).parent / 'liby.so.1'))\nCDLL('./libz.so.1')\n"),
            Loads{});
}

TEST(PythonLoads, WhatIsBrokenOrEndlessEnds) {
  EXPECT_EQ(library_loads("CDLL('"), Loads{});
  EXPECT_EQ(library_loads("CDLL("), Loads{});
  EXPECT_EQ(library_loads("for\nCDLL"), Loads{});
  EXPECT_EQ(library_loads("x = 'CDLL' \\"), Loads{});
  EXPECT_EQ(library_loads("'''CDLL\\"), Loads{});
  EXPECT_EQ(library_loads(std::string(100'000, '(') + "CDLL('liba.so.1')").size(), 1U);
}

TEST(PythonLoads, AreKeptAsText) {
  const Loads loads = {{true, {"cairo-2", "libcairo.so.2"}}, {false, {"magic"}}};
  EXPECT_EQ(read_loads(render_loads(loads)), loads);
  EXPECT_EQ(read_loads(""), Loads{});
}

TEST(PythonLoads, DebiansOwnAndTestsAreNotLookedInto) {
  EXPECT_TRUE(may_load_libraries("opt/venv/lib/python3.11/site-packages/magic/loader.py", 10));
  EXPECT_FALSE(may_load_libraries("usr/lib/python3/dist-packages/magic.py", 10));
  EXPECT_FALSE(may_load_libraries("opt/venv/lib/python3.11/site-packages/a/tests/x.py", 10));
  EXPECT_FALSE(may_load_libraries("opt/venv/lib/python3.11/site-packages/a.py", 0));
  EXPECT_FALSE(may_load_libraries("workspace/train.py", 10));
}

/// An image of these Python files, and these libraries.
std::vector<MissingLibrary> missing_of(const std::map<std::string, std::string>& modules,
                                       const std::vector<std::string>& files = {}) {
  LayerFacts layer;
  for (const std::string& path : files) layer.entries.push_back({"file", path, "", 1});
  for (const auto& [path, text] : modules) {
    const std::string full = "opt/venv/lib/python3.11/site-packages/" + path;
    layer.entries.push_back({"file", full, "", 1});
    layer.texts.push_back({full, render_loads(library_loads(text))});
  }
  std::sort(layer.entries.begin(), layer.entries.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return missing_loaded_libraries(ImageTree{{layer}});
}

TEST(LoadedLibraries, APackageIsNothingWithoutTheLibraryThatItIsMadeOf) {
  const auto missing =
      missing_of({{"pyzbar/zbar_library.py", "def load():\n    path = find_library('zbar')\n"}});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].library, "libzbar.so.0");
  EXPECT_TRUE(missing[0].is_wanted());
  const auto other = missing_of({{"thing/x.py", "def load():\n    return find_library('zbar')\n"}});
  ASSERT_EQ(other.size(), 1U);
  EXPECT_FALSE(other[0].is_wanted());
}

TEST(LoadedLibraries, FullSonamesCountWhereTheImportLoadsThem) {
  const auto missing = missing_of(
      {{"a.py", "CDLL('libnew.so.4')\n"}, {"b.py", "def f():\n  CDLL('libold.so.4')\n"}});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].library, "libnew.so.4");
  EXPECT_TRUE(missing_of({{"a.py", "CDLL('libnew.so')\nfind_library('Carbon')\n"}}).empty());
}

TEST(LoadedLibraries, ACopyAnywhereWillDo) {
  const std::map<std::string, std::string> soundfile = {
      {"soundfile.py",
       "try:\n    x = dlopen(path)\nexcept OSError:\n"
       "    _libname = _find_library('sndfile')\n"}};
  EXPECT_EQ(missing_of(soundfile).size(), 1U);
  for (const char* file : {"usr/lib/x86_64-linux-gnu/libsndfile.so.1",
                           "opt/venv/lib/python3.11/site-packages/_soundfile_data/"
                           "libsndfile_x86_64.so",
                           "opt/venv/x.libs/libsndfile-a34b3233.so.1.0.37"}) {
    EXPECT_TRUE(missing_of(soundfile, {file}).empty()) << file;
  }
  EXPECT_EQ(missing_of(soundfile, {"usr/lib/libsndfiles.so.1"}).size(), 1U);
}

TEST(LoadedLibraries, WhatTheDriverBringsIsNotMissing) {
  EXPECT_TRUE(missing_of({{"a.py", "CDLL('libcuda.so.1')\nCDLL('libcudart.so.12')\n"}}).empty());
}

}  // namespace
}  // namespace mlenv
