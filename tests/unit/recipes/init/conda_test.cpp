#include <gtest/gtest.h>

#include "recipes/init/conda_names.hpp"
#include "recipes/init/conda_packages.hpp"
#include "recipes/init/conda_spec.hpp"
#include "recipes/init/convert.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

TEST(CondaNames, NoLibraryIsAPythonPackage) {
  for (const char* name : {"bzip2", "zlib", "ncurses", "readline", "numpy-base", "ld_impl_linux-64",
                           "libgcc-ng", "mkl", "_libgcc_mutex", "libfoo", "snappy", "cudnn", "blas",
                           "xxhash", "faiss-proc", "arrow-cpp"}) {
    EXPECT_EQ(conda_name(name).kind, CondaKind::library) << name;
  }
}

TEST(CondaNames, PythonPackagesAreCalledAsPyPiDoes) {
  const std::vector<std::pair<const char*, const char*>> expected = {
      {"numpy", "numpy"},
      {"pytorch", "torch"},
      {"pytables", "tables"},
      {"libcst", "libcst"},
      {"typing_extensions", "typing-extensions"},
      {"python-xxhash", "xxhash"},
      {"typing-extensions", "typing-extensions"},
      {"pysoundfile", "soundfile"},
      {"ray-tune", "ray[tune]"},
      {"opencv", "opencv-python-headless"},
      {"pandas", "pandas"},
      {"azure-ai-ml", "azure-ai-ml"},
      {"snakemake-minimal", "snakemake"},
      {"gudhi", "gudhi"}};
  for (const auto& [conda, pypi] : expected) {
    EXPECT_EQ(conda_name(conda).kind, CondaKind::python) << conda;
    EXPECT_EQ(conda_name(conda).name, pypi) << conda;
  }
}

TEST(CondaNames, OthersAreDebiansOrTold) {
  EXPECT_EQ(conda_name("tk").name, "python3-tk");
  EXPECT_TRUE(conda_name("tk").brought_along);
  EXPECT_EQ(conda_name("openmpi").name, "openmpi-bin libopenmpi-dev");
  EXPECT_EQ(conda_name("dataclasses").kind, CondaKind::needless);
  EXPECT_EQ(conda_name("m2w64-gcc-libs").kind, CondaKind::windows);
  EXPECT_EQ(conda_name("r-ggplot2").kind, CondaKind::r);
  EXPECT_EQ(conda_name("team-tool").kind, CondaKind::unknown);
  // PyPI has a stranger's project of that name.
  EXPECT_EQ(conda_name("iris").kind, CondaKind::unknown);
  EXPECT_EQ(conda_name("").kind, CondaKind::unknown);
}

TEST(CondaSpec, IsReadInAllItsForms) {
  struct Case {
    const char* text;
    const char* name;
    const char* specifier;
    const char* build;
  };
  for (const Case& one :
       {Case{"numpy", "numpy", "", ""},
        Case{"numpy=1.26.4=py311h64a7726_0", "numpy", "==1.26.4", "py311h64a7726_0"},
        Case{"NumPy =1.2", "numpy", "==1.2.*", ""},
        Case{"numpy 1.2 py3_0", "numpy", "==1.2", "py3_0"},
        Case{"c::numpy >=1,<2", "numpy", ">=1,<2", ""},
        Case{"numpy >= 1.2.*, < 2", "numpy", ">=1.2,<2", ""},
        Case{"numpy[version='>=1,<2', build=x]", "numpy", ">=1,<2", "x"},
        Case{"numpy=1.2*", "numpy", "==1.2.*", ""}, Case{"numpy 1.2.*", "numpy", "==1.2.*", ""},
        Case{"numpy=*=mkl*", "numpy", "", "mkl*"}, Case{"numpy==1.2", "numpy", "==1.2", ""},
        Case{"numpy~=1", "numpy", ">=1", ""}, Case{"numpy!=1.2", "numpy", "!=1.2", ""},
        Case{"https://h.example/c/linux-64/scikit-learn-1.0.2-py39_1.conda#ab", "scikit-learn",
             "==1.0.2", "py39_1"},
        Case{"numpy=1.0.0rc1", "numpy", "==1.0.0rc1.*", ""},
        Case{"numpy # why", "numpy", "", ""}}) {
    const CondaSpec spec = conda_spec(one.text);
    EXPECT_EQ(spec.name, one.name) << one.text;
    EXPECT_EQ(pep440_specifier(spec).value_or("none"), one.specifier) << one.text;
    EXPECT_EQ(spec.build, one.build) << one.text;
  }
  EXPECT_EQ(pep440_specifier(conda_spec("openssl=1.1.1q=h0")), std::nullopt);
  EXPECT_EQ(pep440_specifier(conda_spec("pillow<10|>=11")), std::nullopt);
  EXPECT_EQ(cuda_of_build("py3.11_cuda12.1_cudnn8.9.2_0"), "12.1");
  EXPECT_EQ(cuda_of_build("cuda112py39h_0"), "11.2");
  EXPECT_EQ(cuda_of_build("py3.9_cpu_0"), "");
}

TEST(CondaList, IsToldByItsLines) {
  EXPECT_TRUE(is_conda_list("# $ conda create --name <env> --file <this file>\nnumpy=1=0\n"));
  EXPECT_TRUE(is_conda_list("@EXPLICIT\nhttps://h.example/a-1-0.conda\n"));
  EXPECT_TRUE(is_conda_list("numpy=1.2=py_0\n\nscipy=1=0\n"));
  EXPECT_FALSE(is_conda_list("numpy==1.2\n"));
  EXPECT_FALSE(is_conda_list("numpy=1.2=py_0\nscipy\n"));
  EXPECT_FALSE(is_conda_list(""));
  Conversion to({}, "a.txt");
  convert_conda_list("a.txt",
                     "numpy=1.26.4=py311_0\ntk=8.6.12=h0\nzlib=1.2.13=h5\ntimm=0.9=pypi_0\n", to);
  to.finish();
  EXPECT_EQ(to.draft.packages, (Strings{"numpy==1.26.4", "timm==0.9"}));
  ASSERT_EQ(to.draft.left_out.size(), 2U);
  EXPECT_EQ(to.draft.left_out[1].text, "tk, zlib");
}

TEST(CondaNames, ProgramsAreDebians) {
  EXPECT_EQ(conda_name("hmmer").name, "hmmer");
  EXPECT_EQ(conda_name("kalign2").name, "kalign");
  EXPECT_EQ(conda_name("blast").name, "ncbi-blast+");
  EXPECT_EQ(conda_name("colmap").kind, CondaKind::system);
  EXPECT_TRUE(conda_name("libspatialindex").brought_along);
  EXPECT_EQ(conda_name("nb_conda_kernels").kind, CondaKind::needless);
}

TEST(CondaNames, FoldersOfAnEnvironmentAreSeen) {
  EXPECT_TRUE(names_conda_folder("$CONDA_PREFIX/lib"));
  EXPECT_TRUE(names_conda_folder("/x:${PIXI_PROJECT_ROOT}"));
  EXPECT_FALSE(names_conda_folder("$HOME/lib"));
}

}  // namespace
}  // namespace mlenv
