#include "recipes/resolve/wheels.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/resolve/cuda.hpp"
#include "recipes/resolve/locations.hpp"
#include "recipes/resolve/lock_gaps.hpp"
#include "recipes/resolve/pylock.hpp"
#include "recipes/resolve/resolve.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_conflict.hpp"
#include "recipes/resolve/wheel_tags.hpp"
#include "recipes/text.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

Recipe recipe_with_rest(const std::string& rest) {
  return parse_recipe("name: a\nbase: debian:bookworm\n" + rest, "r.yaml");
}

LockedWheel locked_wheel(const std::string& name, const std::string& version) {
  return {.name = name,
          .version = version,
          .file = name + "-" + version + "-py3-none-any.whl",
          .size_bytes = 1,
          .digest = Digest::of(name + version)};
}

// What uv 0.13.8 said it takes for `--python-version 3.11 --python-platform x86_64-manylinux_2_36`,
// out of what the index had of these releases in November 2026.
TEST(WheelTags, ChooseAsUvDoes) {
  struct Case {
    Strings files;
    std::string chosen;
  };
  const std::vector<Case> cases = {
      {{"aiohttp-3.14.5-py3-none-any.whl",
        "aiohttp-3.14.5-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_"
        "64."
        "whl"},
       "aiohttp-3.14.5-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.manylinux_2_28_x86_"
       "64."
       "whl"},
      {{"cryptography-50.0.2-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "cryptography-50.0.2-cp311-abi3-manylinux_2_28_x86_64.whl",
        "cryptography-50.0.2-cp311-abi3-manylinux_2_34_x86_64.whl",
        "cryptography-50.0.2-cp39-abi3-manylinux_2_34_x86_64.whl"},
       "cryptography-50.0.2-cp311-abi3-manylinux_2_34_x86_64.whl"},
      {{"lxml-6.1.3-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "lxml-6.1.3-cp311-cp311-manylinux_2_26_x86_64.manylinux_2_28_x86_64.whl"},
       "lxml-6.1.3-cp311-cp311-manylinux_2_26_x86_64.manylinux_2_28_x86_64.whl"},
      {{"protobuf-7.36.2-py3-none-any.whl", "protobuf-7.36.2-cp310-abi3-manylinux2014_x86_64.whl"},
       "protobuf-7.36.2-cp310-abi3-manylinux2014_x86_64.whl"},
      {{"tensorboard_data_server-0.7.2-py3-none-any.whl",
        "tensorboard_data_server-0.7.2-py3-none-manylinux_2_31_x86_64.whl"},
       "tensorboard_data_server-0.7.2-py3-none-manylinux_2_31_x86_64.whl"}};
  const WheelTags tags("3.11", "2.36", "amd64");
  for (const Case& one : cases) {
    const auto best = tags.best(one.files);
    ASSERT_TRUE(best);
    EXPECT_EQ(one.files[*best], one.chosen);
  }
}

TEST(WheelTags, RefuseWhatDoesNotRunHere) {
  const WheelTags tags("3.11", "2.36", "amd64");
  for (const char* file :
       {"a-1-cp312-cp312-manylinux_2_17_x86_64.whl", "a-1-cp311-cp311-manylinux_2_39_x86_64.whl",
        "a-1-cp311-cp311-manylinux_2_17_aarch64.whl", "a-1-cp311-cp311-musllinux_1_1_x86_64.whl",
        "a-1-cp312-abi3-manylinux_2_17_x86_64.whl", "a-1-cp311-cp311-win_amd64.whl",
        "a-1-py2-none-any.whl", "a-1.tar.gz", "a.whl", ""}) {
    EXPECT_FALSE(tags.rank(file)) << file;
  }
  for (const char* file :
       {"a-1-py2.py3-none-any.whl", "a-1-cp311-none-manylinux1_x86_64.whl",
        "a-1-1-cp311-cp311-linux_x86_64.whl", "a-1-cp32-abi3-manylinux2010_x86_64.whl"}) {
    EXPECT_TRUE(tags.rank(file)) << file;
  }
  EXPECT_TRUE(WheelTags("3.13", "2.41", "arm64").rank("a-1-cp313-cp313-manylinux2014_aarch64.whl"));
  EXPECT_EQ(tags.best({"a-1-1-py3-none-any.whl", "a-1-2-py3-none-any.whl", "a-1-py3-none-any.whl"}),
            1U);
  EXPECT_FALSE(tags.best({}));
}

// PEP 440, "Summary of permitted suffixes and relative ordering".
TEST(Versions, Order) {
  const Strings ordered = {"0.9",    "1.dev0",   "1.0.dev456", "1.0a1",     "1.0a2",
                           "1.0b1",  "1.0rc1",   "1.0",        "1.0+abc.5", "1.0.post456",
                           "1.0.15", "1.1.dev1", "1.10",       "1!0.1"};
  for (std::size_t i = 0; i + 1 < ordered.size(); ++i) {
    EXPECT_TRUE(std::is_lt(compare_versions(ordered[i], ordered[i + 1]))) << ordered[i];
  }
  EXPECT_TRUE(std::is_eq(compare_versions("1.0", "1.0.0")));
  EXPECT_EQ(version_prefix("13.2.2", 2), "13.2");
  EXPECT_EQ(version_prefix("13", 2), "13");
  EXPECT_EQ(upstream_version("1:3.11.2-6+deb12u5"), "3.11.2");
  EXPECT_EQ(upstream_version("2.36-9+deb12u13"), "2.36");
}

// The cases are those of packaging's own tests of specifiers.
TEST(Versions, SatisfySpecifiers) {
  for (const auto& [version, specifiers] :
       std::vector<std::pair<const char*, const char*>>{{"2.0", ""},
                                                        {"2.0", "==2"},
                                                        {"2.0.post1", "==2.0.post1"},
                                                        {"2.0+deadbeef", "==2.0"},
                                                        {"2.0", "==2.*"},
                                                        {"2.0.1+cu1", "==2.0.*"},
                                                        {"2.1rc1", "==2.1.*"},
                                                        {"2.1", "!=2.0"},
                                                        {"2.1", "!=2"},
                                                        {"2.1", "!=2.0.*"},
                                                        {"2.0", "===2.0"},
                                                        {"2.1.1", "~=2.1"},
                                                        {"2.2.0", "~=2.2.0"},
                                                        {"2.3", "~=2.2"},
                                                        {"2.2.post4", "~=2.2.post3"},
                                                        {"2.0.0+x", ">=2.0"},
                                                        {"2.0.1", ">2.0.0"},
                                                        {"2.1", ">2.0.post1"},
                                                        {"1.9", "<2"},
                                                        {"1.9rc1", "<2"},
                                                        {"2.0rc1", "<2.0rc2"},
                                                        {"2.10", ">=2.9,<3"},
                                                        {"1!2.0", "==1!2.*"},
                                                        {"1!2.0", ">2019"}}) {
    EXPECT_TRUE(version_satisfies(version, specifiers)) << version << ' ' << specifiers;
  }
  for (const auto& [version, specifiers] :
       std::vector<std::pair<const char*, const char*>>{{"2.1", "==2"},
                                                        {"2.0", "==2.0+x"},
                                                        {"2.1", "==2.0.*"},
                                                        {"2.0", "!=2.0"},
                                                        {"2.0.1", "!=2.0.*"},
                                                        {"2.0.0", "===2.0"},
                                                        {"3.0", "~=2.1"},
                                                        {"2.3", "~=2.2.0"},
                                                        {"2.1", "~=2.2"},
                                                        {"1.9", ">=2.0"},
                                                        {"2.0.post1", ">2.0"},
                                                        {"2.0+x", ">2.0"},
                                                        {"2.0rc1", "<2.0"},
                                                        {"2.0.dev1", "<2"},
                                                        {"2.0", "<2.0"},
                                                        {"3.0", ">=2.9,<3"},
                                                        {"2.0", "==1!2.0"},
                                                        {"2.0rc1", ">=2.0"}}) {
    EXPECT_FALSE(version_satisfies(version, specifiers)) << version << ' ' << specifiers;
  }
}

TEST(LockGaps, NameWhatTheRecipeAsksForInVain) {
  const Recipe recipe = recipe_with_rest(
      "framework: pytorch>=2\npackages: [idna<4, \"six ; python_version < '3'\"]\n"
      "system: [git, curl=1]\n");
  Lock lock;
  lock.python = "3.11.2";
  lock.wheels = {locked_wheel("idna", "4.0"), locked_wheel("torch", "2.5.1+cu124")};
  lock.debs = {{.name = "curl",
                .version = "2",
                .architecture = "amd64",
                .path = "pool/c.deb",
                .size_bytes = 1,
                .digest = Digest::of("curl")}};
  lock.revision = 0;
  EXPECT_EQ(lock_gaps(recipe, lock),
            (std::vector<std::string>{"the lock holds idna 4.0, which is not `idna<4`",
                                      "the lock holds no Debian package for `git`",
                                      "the lock holds curl 2, which is not `curl=1`"}));
  lock.wheels.pop_back();
  EXPECT_EQ(lock_gaps(recipe, lock).front(), "the lock holds no wheel for `torch>=2`");
  lock.revision = Lock::kChecksumRevision;  // its checksum was held against it when it was read
  EXPECT_TRUE(lock_gaps(recipe, lock).empty());
}

TEST(Cuda, ReleaseAndDriverComeFromTheWheels) {
  const auto torch =
      locked_cuda({locked_wheel("cuda-toolkit", "13.2.2"), locked_wheel("nvidia-cudnn-cu13", "9.1"),
                   locked_wheel("nvidia-cuda-runtime", "13.2.86")});
  EXPECT_EQ(std::get<0>(torch), (LockedCuda{.release = "13.2", .min_driver = "580"}));
  const auto old = locked_cuda({locked_wheel("nvidia-cuda-runtime-cu12", "12.6.77")});
  EXPECT_EQ(std::get<0>(old), (LockedCuda{.release = "12.6", .min_driver = "525.60.13"}));
  EXPECT_EQ(std::get<0>(locked_cuda({locked_wheel("numpy", "2")})), std::nullopt);
  EXPECT_EQ(std::get<0>(locked_cuda({locked_wheel("nvidia-nccl-cu12", "2.32")})), std::nullopt);
}

TEST(Cuda, FrameworksThatHoldItTellTheRelease) {
  const auto release = [](const std::string& version, const std::string& file) {
    LockedWheel torch = locked_wheel("torch", version);
    torch.file = file;
    const auto found = std::get<0>(locked_cuda({torch}));
    return found ? found->release + " from " + found->min_driver : "none";
  };
  EXPECT_EQ(release("1.12.1", "torch-1.12.1-cp310-cp310-manylinux1_x86_64.whl"),
            "10.2 from 440.33");
  EXPECT_EQ(release("1.12.1", "torch-1.12.1-cp310-cp310-manylinux2014_aarch64.whl"), "none");
  EXPECT_EQ(release("1.12.1+cu113", "torch-1.12.1+cu113-cp310-cp310-linux_x86_64.whl"),
            "11.3 from 450.80.02");
  EXPECT_EQ(release("2.1.0+cpu", "torch-2.1.0+cpu-cp310-cp310-linux_x86_64.whl"), "none");
  EXPECT_EQ(release("2.1.0", "torch-2.1.0-cp310-cp310-manylinux1_x86_64.whl"), "none");
}

TEST(Cuda, TwoMajorsAndUnknownOnesAreConflicts) {
  const auto two = locked_cuda(
      {locked_wheel("cuda-toolkit", "13.2.2"), locked_wheel("nvidia-nccl-cu12", "2.32")});
  ASSERT_EQ(two.index(), 1U);
  EXPECT_EQ(std::get<1>(two).headline, "the wheels carry CUDA 12 and 13 in one image");
  EXPECT_EQ(locked_cuda({locked_wheel("cuda-toolkit", "99.0.0")}).index(), 1U);
}

TEST(Cuda, FrameworksStandForTheirPackages) {
  const auto first = [](const std::string& rest) {
    return framework_requirements(recipe_with_rest(rest)).requirements.front();
  };
  EXPECT_EQ(first("framework: pytorch>=2.9\n"), "torch>=2.9");
  EXPECT_EQ(first("framework: jax\n"), "jax");
  EXPECT_EQ(first("framework: jax\ncuda: 12.6\n"), "jax[cuda12]");
  // Before 0.4.27 nothing but an extra brings jaxlib.
  EXPECT_EQ(first("framework: jax==0.4.13\n"), "jax[cpu]==0.4.13");
  EXPECT_EQ(first("framework: \"jax<0.4.26\"\ncuda: cpu\n"), "jax[cpu]<0.4.26");
  EXPECT_EQ(first("framework: jax==0.4.30\n"), "jax==0.4.30");
  EXPECT_EQ(first("framework: jax==0.4.13\ncuda: 12.6\n"), "jax[cuda12]==0.4.13");
  EXPECT_EQ(first("framework: \"jax[k8s] < 1\"\ncuda: 13\n"), "jax[k8s,cuda13]<1");
  EXPECT_EQ(first("framework: tensorflow\ncuda: 12.6\n"), "tensorflow[and-cuda]");
  EXPECT_EQ(first("framework: tensorflow>=2.16\ncuda: cpu\n"), "tensorflow-cpu>=2.16");
  // Before 2.14 it names none of CUDA's packages.
  const Strings old =
      framework_requirements(recipe_with_rest("framework: tensorflow<2.13\ncuda: \"11.8\"\n"))
          .requirements;
  EXPECT_EQ(old.front(), "tensorflow<2.13");
  EXPECT_NE(std::find(old.begin(), old.end(), "nvidia-cudnn-cu11<9"), old.end());
  EXPECT_EQ(first("framework: scikit-learn\n"), "scikit-learn");
}

TEST(Cuda, ReleasesStandForConstraints) {
  const auto has = [](const Strings& all, std::string_view one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  const Strings torch =
      framework_requirements(recipe_with_rest("framework: pytorch\ncuda: \"13.0\"\n")).constraints;
  EXPECT_TRUE(has(torch, "cuda-toolkit==13.0.*"));
  EXPECT_TRUE(has(torch, "nvidia-cuda-runtime-cu12<0"));
  // What has its own CUDA inside asks for no package of it.
  EXPECT_TRUE(has(cuda_constraints("10.2"), "nvidia-cuda-runtime-cu11<0"));
  const Strings older = cuda_constraints("12.6");
  EXPECT_TRUE(has(older, "nvidia-cuda-runtime-cu12==12.6.*"));
  EXPECT_TRUE(has(older, "nvidia-cuda-runtime<0"));
  EXPECT_FALSE(has(older, "nvidia-cuda-runtime-cu12<0"));
  EXPECT_TRUE(framework_requirements(recipe_with_rest("framework: jax\n")).constraints.empty());
}

TEST(Uv, UnknownPackageIsAConflictThatNamesIt) {
  const auto said = explain_uv_failure(
      "error: No solution found when resolving dependencies\n"
      "  cause: Because nunpy was not found in the package registry and you require nunpy, we can "
      "conclude that your requirements are unsatisfiable.\n");
  const auto& conflict = std::get<Conflict>(said);
  EXPECT_EQ(conflict.headline, "the Python indexes have no package `nunpy`");
  EXPECT_EQ(conflict.absent, "nunpy");
  EXPECT_EQ(conflict.facts,
            Strings{"nunpy was not found in the package registry and you require nunpy"});
}

TEST(Uv, ConflictsShowTheRecipesLines) {
  const Recipe recipe =
      recipe_with_rest("framework: pytroch\npackages:\n  - idna>=99\n  - idna-core\n  - six\n");
  auto said = explain_uv_failure(
      "  cause: No solution found: Because only idna<=3.20 is available and you require idna>=99, "
      "we can conclude that your requirements are unsatisfiable.\n");
  auto& conflict = std::get<Conflict>(said);
  show_requirements(conflict, recipe);
  EXPECT_EQ(conflict.facts,
            (Strings{"r.yaml:5:5: the recipe asks for `idna>=99`\n      - idna>=99\n        ^",
                     "only idna<=3.20 is available and you require idna>=99"}));
  const Conflict absent = absent_packages(recipe, {"pytroch", "six"});
  EXPECT_EQ(absent.headline, "the Python indexes have no packages `pytroch`, `six`");
  EXPECT_EQ(absent.facts,
            (Strings{"r.yaml:3:12: the recipe asks for `pytroch`; did you mean `pytorch`?\n"
                     "    framework: pytroch\n               ^",
                     "r.yaml:7:5: the recipe asks for `six`\n      - six\n        ^"}));
}

TEST(Uv, DerivationBecomesFactsWithoutHosts) {
  // As uv 0.11 draws it, wrapped and boxed.
  const auto said = explain_uv_failure(
      "  × No solution found when resolving dependencies:\n"
      "  ╰─▶ Because torch>=2.15.0 depends on cuda-toolkit[cublas]==13.2.2 and you\n"
      "      require torch==2.15.0, we can conclude that you require\n"
      "      cuda-toolkit==13.2.2.\n"
      "      And because you require cuda-toolkit==13.0.*, we can conclude that your\n"
      "      requirements are unsatisfiable (https://user:secret@mirror.example/simple).\n\n"
      "hint: something\n");
  EXPECT_EQ(std::get<Conflict>(said).facts,
            (Strings{"torch>=2.15.0 depends on cuda-toolkit[cublas]==13.2.2 and you require "
                     "torch==2.15.0, so you require cuda-toolkit==13.2.2",
                     "you require cuda-toolkit==13.0.*, so your "
                     "requirements are unsatisfiable (the index)"}));
}

TEST(Uv, AnAddressThatAnIndexesPackageNamesIsAConflict) {
  for (const std::string_view opening :
       {"error: Failed to resolve dependencies for package `p==1`\n  cause: ",
        "  × Failed to resolve dependencies for `p` (v1)\n  ╰─▶ "}) {
    const auto said = explain_uv_failure(
        fmt::format("{}Package `b` was included as a URL dependency. URL dependencies must be\n"
                    "      expressed as direct requirements or constraints. Consider adding `b @\n"
                    "      https://h.example/b-1.tar.gz` to your dependencies\n",
                    opening));
    const auto* conflict = std::get_if<Conflict>(&said);
    ASSERT_NE(conflict, nullptr);
    EXPECT_EQ(conflict->headline,
              "`p` asks for `b` at an address of its own, which counts in a recipe alone");
    EXPECT_EQ(conflict->hint,
              "if that is trusted, add `b @ ADDRESS` to `packages`, with the address that its "
              "metadata names");
  }
}

TEST(Uv, WhatAnIndexSaysMayBeOfAnyLength) {
  const std::string address = "https://h.example/" + std::string(200'000, 'a');
  EXPECT_EQ(code_of([&] { explain_uv_failure("error: Failed to fetch: `" + address + "`\n"); }),
            "network");
  const auto said = explain_uv_failure("No solution found: Because six==9 needs " + address +
                                       " and you require six, we can conclude that your "
                                       "requirements are unsatisfiable.\n");
  EXPECT_TRUE(std::holds_alternative<Conflict>(said));
}

TEST(Uv, BuildsAreRecognised) {
  for (const char* text :
       {"error: Failed to download and build `Horovod==0.28.1`\n  cause: Failed to identify base "
        "Python interpreter\n",
        "  × Failed to build `horovod==0.28.1`\n  ╰─▶ No such file or directory (os error 2)\n"}) {
    const auto said = explain_uv_failure(text);
    EXPECT_EQ(std::get<NeedsBuild>(said).name, "horovod");
    EXPECT_EQ(std::get<NeedsBuild>(said).version, "0.28.1");
  }
}

TEST(Wheels, AWheelThatCannotBeReadIsNoMatterOfTheNetwork) {
  for (const char* said :
       {"error: Failed to download `odd==1.0`\n  Caused by: Failed to extract archive: odd.whl\n"
        "  Caused by: Invalid zip file structure\n",
        "error: Failed to download `odd==1.0`\n  Caused by: `RECORD` file is invalid: a zip\n",
        "error: Package metadata name `other` does not match given name `odd`\n",
        "error: The index returned metadata for the wrong package: expected distribution metadata "
        "for odd, got distribution metadata for other\n"}) {
    try {
      (void)explain_uv_failure(said);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "bad-wheel");
      EXPECT_EQ(error.frames().front(), "a wheel that an index offers cannot be read");
      EXPECT_NE(error.frames().back().find(
                    std::string_view(said).find("zip") != std::string_view::npos ? "zip" : "other"),
                std::string::npos);
    }
  }
}

TEST(Wheels, ACertificateThatUvDoesNotTrustIsSaidAsForDownloads) {
  try {
    (void)explain_uv_failure(
        "error: Failed to fetch: `https://index.test/simple/jax/`\n"
        "  Caused by: error sending request for url (https://index.test/simple/jax/)\n"
        "  Caused by: invalid peer certificate: UnknownIssuer\n"
        "  Caused by: hint: Consider enabling use of system TLS certificates\n",
        false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "certificate");
    const std::string text = join(error.frames(), "\n");
    EXPECT_NE(text.find("UnknownIssuer"), std::string::npos) << text;
    EXPECT_EQ(text.find("Consider"), std::string::npos) << text;
  }
}

TEST(Wheels, UvTrustsWhatTheMachineTrusts) {
  const std::vector<std::string> more = {"UV_PYTHON_DOWNLOADS=never", "UV_SYSTEM_CERTS=true",
                                         "UV_NATIVE_TLS=true"};
  EXPECT_EQ(uv_environment({}), more);
  EXPECT_EQ(uv_environment({"HOME=/h", "VIRTUAL_ENV=/v"}).front(), "HOME=/h");
  EXPECT_EQ(uv_environment({"HOME=/h", "VIRTUAL_ENV=/v"}).size(), more.size() + 1);
  const std::vector<std::string> bundle = uv_environment({"CURL_CA_BUNDLE=/own/ca.pem"});
  EXPECT_NE(std::find(bundle.begin(), bundle.end(), "SSL_CERT_FILE=/own/ca.pem"), bundle.end());
  const std::vector<std::string> both =
      uv_environment({"CURL_CA_BUNDLE=/own/ca.pem", "SSL_CERT_FILE=/for/uv.pem"});
  EXPECT_EQ(std::find(both.begin(), both.end(), "SSL_CERT_FILE=/own/ca.pem"), both.end());
  const std::vector<std::string> not_here = {"UV_SYSTEM_CERTS=false", "UV_PYTHON_DOWNLOADS=never"};
  EXPECT_EQ(uv_environment({"UV_SYSTEM_CERTS=false"}), not_here);
}

TEST(Uv, NetworkFailuresAreErrors) {
  try {
    explain_uv_failure(
        "error: Request failed after 3 retries in 7.4s\n"
        "  cause: Failed to fetch: http://me:secret@127.0.0.1:9/simple/idna/\n"
        "  cause: tcp connect error\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "network");
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
    EXPECT_EQ(error.frames().back(), "tcp connect error");
    EXPECT_NE(error.hint().find("UV_DEFAULT_INDEX"), std::string::npos);
  }
  try {
    explain_uv_failure("error: Failed to fetch: http://127.0.0.1:9/simple/idna/\n", true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(),
              "check the network and the addresses under `sources: {pypi: […]}` in the recipe");
  }
  try {
    explain_uv_failure("error: unexpected argument '--x' found\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "uv-failed");
  }
}

TEST(Pylock, ReadsWheelsOfAnyOrigin) {
  const std::string hex = Digest::of("x").hex();
  const auto packages = parse_pylock(
      "lock-version = \"1.0\"\n[[packages]]\nname = \"Torch_x\"\nversion = \"2.9+cpu\"\nwheels = "
      "[\n"
      "{ url = \"https://h/p/torch_x-2.9%2Bcpu-py3-none-any.whl\", upload-time = "
      "2026-10-09T08:38:56Z, "
      "hashes = { sha256 = \"" +
          hex +
          "\" } },\n"
          "{ path = \"sub/torch_x-2.9-py3-none-any.whl\", size = 7, hashes = { md5 = \"1\" } "
          "},\n]\n"
          "[[packages]]\nname = \"src\"\nversion = \"1\"\nsdist = { url = "
          "\"https://h/src-1.tar.gz\" }\n",
      "/tmp/q");
  ASSERT_EQ(packages.size(), 2U);
  EXPECT_EQ(packages[0].name, "torch-x");
  EXPECT_EQ(packages[0].wheels[0].file, "torch_x-2.9+cpu-py3-none-any.whl");
  EXPECT_EQ(packages[0].wheels[0].digest, Digest::of("x"));
  EXPECT_EQ(packages[0].wheels[1].url, "file:///tmp/q/sub/torch_x-2.9-py3-none-any.whl");
  EXPECT_EQ(packages[0].wheels[1].size_bytes, 7U);
  EXPECT_FALSE(packages[0].wheels[1].digest);
  EXPECT_TRUE(packages[1].has_source);
  EXPECT_TRUE(packages[1].wheels.empty());
  EXPECT_THROW(parse_pylock("lock-version = \"2.0\"\n", "/tmp/q"), Error);
  EXPECT_THROW(parse_pylock("<html>", "/tmp/q"), Error);
}

TEST(Locations, AreRemembered) {
  const TemporaryFolder cache(temporary_root());
  const Digest digest = Digest::of("x");
  EXPECT_FALSE(recall_location(cache.path(), digest));
  remember_location(cache.path(), digest, {.url = "https://h/a.whl", .size_bytes = 9});
  EXPECT_EQ(recall_location(cache.path(), digest)->url, "https://h/a.whl");
  EXPECT_EQ(recall_location(cache.path(), digest)->size_bytes, 9U);
  write_file(cache.path() / "locations" / digest.hex(), "junk", false);
  EXPECT_FALSE(recall_location(cache.path(), digest));
}

TEST(Resolve, PythonThatNobodyHasIsAConflictAtOnce) {
  const Recipe recipe = recipe_with_rest("python: \"3.7\"\n");
  Http http;
  QuietProgress progress;
  const Resolution answer = resolve(recipe, {}, http, progress);
  const auto& conflict = std::get<Conflict>(answer);
  EXPECT_EQ(conflict.headline, "`base: debian:bookworm` has Python 3.11, the recipe wants 3.7");
  EXPECT_EQ(conflict.hint,
            "write `python: \"3.11\"`, or name a mirror of python-build-standalone with "
            "UV_PYTHON_INSTALL_MIRROR, or an archive with `sources: {python: {url: …, sha256: "
            "…}}`");
  EXPECT_EQ(conflict.facts.back(), "uv has no build of Python 3.7");
  EXPECT_EQ(conflict.facts.front(),
            "r.yaml:3:9: the recipe asks for Python 3.7\n    python: \"3.7\"\n            ^");
}

TEST(Resolve, KeepsEverythingWhenOnlySettingsChange) {
  const Recipe before = recipe_with_rest("framework: jax\n");
  Lock previous;
  previous.request = request_of(before);
  previous.settings = settings_of(before);
  previous.distribution = "debian";
  previous.suite = "bookworm";
  previous.python = "3.11.2";
  for (const auto& [name, version] :
       {std::pair{"libc6", "2.36-9+deb12u13"}, std::pair{"python3", "3.11.2-1+b1"},
        std::pair{"python3.11-minimal", "3.11.2-6+deb12u5"}}) {
    previous.debs.push_back({.name = name,
                             .version = version,
                             .architecture = "amd64",
                             .path = std::string("pool/") + name + ".deb",
                             .size_bytes = 1,
                             .digest = Digest::of(name)});
  }
  previous.wheels = {locked_wheel("jax", "0.10.2")};
  const Recipe after = recipe_with_rest("framework: jax\nenv: {A: b}\ncommand: [python]\n");
  ResolveOptions options;
  options.cache = "/nonexistent";  // nothing may be asked or written
  options.previous = &previous;
  Http http;
  QuietProgress progress;
  Lock expected = previous;
  expected.settings = settings_of(after);
  EXPECT_EQ(std::get<Lock>(resolve(after, options, http, progress)), expected);

  const auto code = [&](const Recipe& recipe) {
    return code_of([&] { resolve(recipe, options, http, progress); });
  };
  const std::vector<LockedDeb> debs = previous.debs;
  previous.debs.erase(previous.debs.begin());
  EXPECT_EQ(code(recipe_with_rest("framework: jax\npackages: [idna]\n")), "no-glibc");
  previous.debs.clear();
  EXPECT_EQ(code(after), "no-python");
  previous.debs = debs;
  previous.revision = Lock::kRevision + 1;
  EXPECT_EQ(code(after), "lock-newer");
}

}  // namespace
}  // namespace mlenv
