#include "recipes/lock.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

Lock sample_lock() {
  Lock lock;
  lock.epoch = 1700000000;
  lock.request = {.base = "debian:bookworm",
                  .python = "3.11",
                  .interpreter = "",
                  .framework = "pytorch",
                  .cuda = "13.0",
                  .packages = {"numpy"},
                  .requirements = {},
                  .constraints = {},
                  .hashes = {},
                  .system = {"git"}};
  lock.settings = {.name = "bert",
                   .env = {{"A", "a \"b\"\n\t\\ü"}},
                   .workdir = "/workspace",
                   .command = {"python", "train.py"},
                   .bytecode = true,
                   .sources = Digest::of("sources"),
                   .run = {},
                   .data = {}};
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.python = "3.11.2";
  lock.cuda = LockedCuda{.release = "13.0", .min_driver = "580"};
  lock.debs = {{.name = "git",
                .version = "1:2.39.5-0+deb12u2",
                .architecture = "amd64",
                .path = "pool/main/g/git/git_2.39.5-0+deb12u2_amd64.deb",
                .size_bytes = 7256,
                .digest = Digest::of("git")}};
  lock.wheels = {{.name = "numpy",
                  .version = "2.4.6",
                  .file = "numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.whl",
                  .size_bytes = 16,
                  .digest = Digest::of("numpy"),
                  .requested = true},
                 {.name = "torch",
                  .version = "2.14.1",
                  .file = "torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl",
                  .size_bytes = 9'000'000'000,
                  .digest = Digest::of("torch")}};
  return lock;
}

std::string text_with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Code and message of a refused lock; empty when it is read.
std::string lock_refusal(std::string_view text) {
  try {
    parse_lock(text, "r.lock");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::usage);
    return error.code() + ' ' + error.frames().front();
  }
}

TEST(Lock, ANewerRevisionOnlyForWhatNeedsIt) {
  EXPECT_EQ(least_revision(sample_lock()), 1);
  Lock own_python = sample_lock();
  own_python.request.interpreter = Digest::of("python").hex();
  own_python.interpreter = LockedPython{.version = "3.11.2",
                                        .file = "cpython.tar.gz",
                                        .size_bytes = 7,
                                        .digest = Digest::of("python")};
  own_python.revision = least_revision(own_python);
  EXPECT_EQ(own_python.revision, 2);
  const std::string text = render_lock(own_python);
  EXPECT_EQ(parse_lock(text, "r.lock"), own_python);
  EXPECT_EQ(render_lock(parse_lock(text, "r.lock")), text);
  own_python.interpreter->version = "3.12.1";
  EXPECT_TRUE(says(lock_refusal(render_lock(own_python)), "`interpreter` is not of the version"));

  Lock elsewhere = sample_lock();
  elsewhere.debs[0].path = "dists/bookworm/pool/git_1_amd64.deb";
  EXPECT_TRUE(says(lock_refusal(render_lock(elsewhere)), "is not a path like `pool/"));
  elsewhere.revision = least_revision(elsewhere);
  EXPECT_EQ(elsewhere.revision, 2);
  EXPECT_EQ(parse_lock(render_lock(elsewhere), "r.lock"), elsewhere);
}

TEST(Lock, SurvivesWritingAndReading) {
  const Lock lock = sample_lock();
  const std::string text = render_lock(lock);
  EXPECT_EQ(parse_lock(text, "r.lock"), lock);
  EXPECT_EQ(render_lock(parse_lock(text, "r.lock")), text);
  EXPECT_TRUE(text.ends_with("]\n"));
  const std::string checksum = "checksum = \"" + lock_digest(lock).hex() + "\"\n";
  EXPECT_EQ(lock_digest(lock), Digest::of(text_with(text, checksum, "")));
  EXPECT_EQ(lock.python_minor(), "3.11");
}

// Golden: a change here changes every lock digest, and so what images record.
TEST(Lock, HasStableText) {
  Lock lock = sample_lock();
  lock.settings.env.clear();
  lock.wheels.pop_back();
  EXPECT_EQ(render_lock(lock),
            R"(# Written by `mlenv lock`: every package by name, version, size and digest.
version = 1
revision = 1
checksum = "a636fd41df9247f9845265b89c1cb4be725f9940ccf8621eeced4f67a6ffb29b"
platform = "linux/amd64"
epoch = 1700000000

[request]
base = "debian:bookworm"
python = "3.11"
framework = "pytorch"
cuda = "13.0"
packages = ["numpy"]
system = ["git"]

[settings]
name = "bert"
workdir = "/workspace"
command = ["python", "train.py"]
bytecode = true
sources = "878a52fc5ff6a57d50b7b870aa51637a3dfd38fc22352a39f95a3c292eb976d5"

[resolved]
distribution = "debian"
suite = "bookworm"
python = "3.11.2"
cuda = "13.0"
min-driver = "580"

[packages]
debian = [
  { name = "git", version = "1:2.39.5-0+deb12u2", architecture = "amd64", path = "pool/main/g/git/git_2.39.5-0+deb12u2_amd64.deb", size = 7256, sha256 = "9a881b9b9f23849475296a8cd768ea1965bc3152df7118e60c145975af6aa58a" },
]
wheels = [
  { name = "numpy", version = "2.4.6", file = "numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.whl", size = 16, sha256 = "73dd0baf8e5438da8816254a073ee43b61f8b2cdef6f393e0059cdbc55cb8d9c", requested = true },
]
)");
}

TEST(Lock, WhatIsAskedOfCudaTakesRevisionTwo) {
  Lock lock = sample_lock();
  const std::string plain = render_lock(lock);
  for (const char* word : {"driver = \">", "gpus", "libraries", "cudnn", "nccl", "architectures"}) {
    EXPECT_FALSE(says(plain, word)) << word;
  }
  lock.revision = Lock::kWholeRecipe;
  lock.request.driver = ">=580";
  lock.request.gpus = {"sm_80", "sm_90"};
  lock.request.libraries = {"cudnn 9.*", "nvcc"};
  lock.cuda->cudnn = "9.24.0.43";
  lock.cuda->nccl = "2.30.7";
  lock.cuda->architectures = {"sm_80", "compute_90"};
  const std::string text = render_lock(lock);
  EXPECT_TRUE(says(text, "revision = 2\n"));
  EXPECT_TRUE(says(text,
                   "cuda = \"13.0\"\ndriver = \">=580\"\ngpus = [\"sm_80\", \"sm_90\"]\n"
                   "libraries = [\"cudnn 9.*\", \"nvcc\"]\n"));
  EXPECT_TRUE(says(text,
                   "min-driver = \"580\"\ncudnn = \"9.24.0.43\"\nnccl = \"2.30.7\"\n"
                   "architectures = [\"sm_80\", \"compute_90\"]\n"));
  EXPECT_EQ(parse_lock(text, "r.lock"), lock);
  EXPECT_TRUE(says(lock_refusal(text_with(text, "\"compute_90\"", "\"H100\"")),
                   "\"H100\" is not a GPU architecture"));
  const std::vector<std::string> lines = lock_differences(sample_lock(), lock);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "requested driver: none → >=580", "requested gpus: none → sm_80, sm_90",
                       "requested libraries: none → cudnn 9.*, nvcc", "cudnn: none → 9.24.0.43",
                       "nccl: none → 2.30.7", "gpu code: none → sm_80 compute_90"}));
}

TEST(Lock, RefusesWhatItDoesNotKnow) {
  const std::string text = render_lock(sample_lock());
  EXPECT_EQ(lock_refusal(text_with(text, "epoch = ", "extra = 1\nepoch = ")).substr(0, 38),
            "lock-invalid r.lock:6:9: unknown key \"");
  EXPECT_NE(lock_refusal(text_with(text, "epoch =", "epohc =")).find("did you mean `epoch`?"),
            std::string::npos);
  EXPECT_NE(lock_refusal(text_with(text, ", requested = true", ", requsted = true")), "");
}

TEST(Lock, NewerRevisionIsReadAndNewerVersionRefused) {
  std::string text =
      text_with(render_lock(sample_lock()), "revision = 1", "revision = 7\nnews = [1]");
  text = text_with(text, ", requested = true", ", requested = true, colour = \"red\"");
  Lock expected = sample_lock();
  expected.revision = 7;
  EXPECT_EQ(parse_lock(text, "r.lock"), expected);
  EXPECT_EQ(lock_refusal(text_with(text, "version = 1", "version = 2")),
            "lock-newer `r.lock` has format version 2, this mlenv reads 1");
}

TEST(Lock, RefusesBadValuesWithTheirPlace) {
  const std::string text = render_lock(sample_lock());
  const auto bad = [&](std::string_view from, std::string_view to) {
    std::string refused = lock_refusal(text_with(text, from, to));
    EXPECT_TRUE(refused.starts_with("lock-invalid r.lock:")) << to << ": " << refused;
    return refused;
  };
  bad("size = 16,", "size = -1,");
  bad("size = 16,", "size = 1.5,");
  bad("size = 16,", "");
  bad("\"numpy-2", "\"../numpy-2");
  bad("\"numpy-2", "\"a\\\\numpy-2");
  bad(".whl\"", ".zip\"");
  bad("\"pool/main/g", "\"pool/../g");
  bad("\"pool/main/g", "\"/pool/main/g");
  bad("\"pool/main/g", "\"pool//g");
  bad("\"amd64\"", "\"m68k\"");
  bad("name = \"numpy\"", "name = \"Numpy\"");
  bad("name = \"numpy\"", "name = \"torch\"");
  bad(Digest::of("torch").hex(), "123");
  bad(Digest::of("torch").hex(), std::string(64, 'A'));
  bad("workdir = \"/workspace\"", "workdir = \"work\"");
  bad("suite = \"bookworm\"", "suite = \"book/worm\"");
  bad("suite = \"bookworm\"", "suite = \"../x\"");
  bad("python = \"3.11.2\"", "python = \"three\"");
  bad("python = \"3.11.2\"\n", "");
  bad("min-driver = \"580\"\n", "");
  bad("platform = \"linux/amd64\"", "platform = \"plan9\"");
  bad("version = 1\n", "version = 0\n");
  bad("A = ", "\"A B\" = ");
  bad("[packages]", "[packages");
  EXPECT_NE(bad("name = \"git\"", "name = \"g\\u0001it\"").find("control"), std::string::npos);
}

TEST(Lock, OrderDoesNotMatter) {
  Lock lock = sample_lock();
  lock.revision = 0;
  Lock other = lock;
  std::swap(other.wheels[0], other.wheels[1]);
  EXPECT_EQ(parse_lock(render_lock(other), "r.lock"), lock);
}

/// As older versions wrote it.
std::string lock_without_checksum(Lock lock) {
  lock.revision = 0;
  return render_lock(lock);
}

TEST(Lock, ChecksumShowsEditsOfTheContentAlone) {
  const Lock lock = sample_lock();
  const std::string text = render_lock(lock);
  EXPECT_EQ(parse_lock("# a comment\n" + text_with(text, "\n[request]", "\n\n[request]"), "r.lock"),
            lock);
  for (const auto& [from, to] :
       {std::pair{"cp311-cp311-manylinux_2_27_", "py3-none-manylinux_2_27_"},
        std::pair{"size = 16,", "size = 17,"}, std::pair{", requested = true", ""},
        std::pair{"epoch = 1", "epoch = 2"}}) {
    EXPECT_TRUE(says(lock_refusal(text_with(text, from, to)),
                     "r.lock:4:12: the lock was edited or merged by hand"))
        << to;
  }
  const std::string checksum = "checksum = \"" + lock_digest(lock).hex() + "\"\n";
  EXPECT_TRUE(says(lock_refusal(text_with(text, checksum, "")), "`checksum` is missing"));
}

TEST(Lock, OlderOnesHaveNoChecksum) {
  Lock lock = sample_lock();
  const std::string text = lock_without_checksum(lock);
  EXPECT_FALSE(says(text, "checksum"));
  lock.revision = 0;
  EXPECT_EQ(parse_lock(text, "r.lock"), lock);
  EXPECT_EQ(lock_digest(lock), Digest::of(text));
}

TEST(Lock, PartsMustNotContradictEachOther) {
  const std::string text = lock_without_checksum(sample_lock());
  const auto refused = [&](std::string_view from, std::string_view to) {
    return lock_refusal(text_with(text, from, to));
  };
  EXPECT_TRUE(says(refused("linux/amd64", "linux/arm64"),
                   "`git` is for amd64, the lock's `platform` is linux/arm64"));
  EXPECT_TRUE(says(refused("cp311-manylinux_2_27_x86_64", "cp311-manylinux_2_27_aarch64"),
                   "for another machine than the lock's `platform`, which is linux/amd64"));
  EXPECT_TRUE(says(refused("version = \"2.4.6\"", "version = \"2.4.7\""),
                   "this file is of version 2.4.6, not of 2.4.7"));
  EXPECT_TRUE(says(refused("\"numpy-2.4.6", "\"numpi-2.4.6"), "of `numpi`, not of `numpy`"));
  EXPECT_TRUE(says(refused("manylinux_2_27_x86_64.whl", "whl.whl"), "another machine"));
  EXPECT_TRUE(says(refused("-cp311-cp311-manylinux_2_27_x86_64.whl", ".whl"),
                   "is not the name of a wheel"));
  // The same version in another spelling.
  for (const auto& [file, version] :
       {std::pair{"2.4.6_1", "2.4.6.post1"}, std::pair{"2.4.6+CU_1", "2.4.6+cu.1"},
        std::pair{"2.4.6.0", "2.4.6"}, std::pair{"2.4.6", "2.4.6.0"}}) {
    const std::string other = text_with(text, "numpy-2.4.6", std::string("numpy-") + file);
    EXPECT_EQ(lock_refusal(text_with(other, "version = \"2.4.6\"",
                                     std::string("version = \"") + version + '"')),
              "")
        << file;
  }
}

TEST(Lock, DamageIsShownWithPlaceAndHint) {
  const std::string text = render_lock(sample_lock());
  const auto shown = [](const std::string& damaged) -> std::string {
    try {
      parse_lock(damaged, "r.lock");
      return {};
    } catch (const Error& error) {
      EXPECT_EQ(error.hint(), "restore it, or remove it and run `mlenv lock`");
      return error.frames().front();
    }
  };
  EXPECT_EQ(shown(""), "r.lock:1:1: the file is empty");
  EXPECT_EQ(shown(text_with(text, "revision = 1\n", "revision = 1\nrevision = 1\n")),
            "r.lock:4:12: `revision` is given twice\n    revision = 1\n               ^");
  EXPECT_EQ(shown("<<<<<<< HEAD\n" + text),
            "r.lock:1:1: git left its conflict marker `<<<<<<<` here\n    <<<<<<< HEAD\n    ^");
  EXPECT_TRUE(says(shown(text.substr(0, text.size() - 3)), "the file ends in the middle"));
  EXPECT_TRUE(
      says(shown(text_with(text, "platform = \"linux/amd64\"", "platform = \"linux")),
           "a text has no closing quote, or holds control characters\n    platform = \"linux\n"));
  EXPECT_TRUE(says(shown(text_with(text, "epoch = ", "epoch ")), "r.lock:6:"));
  EXPECT_TRUE(says(shown(text_with(text, "},\n]", "}\n")), "missing"));
}

TEST(Lock, TellsDifferences) {
  const Lock from = sample_lock();
  Lock to = from;
  EXPECT_TRUE(lock_differences(from, to).empty());
  to.request.packages = {"numpy", "scipy"};
  to.settings.env["B"] = "b";
  to.cuda->release = "13.2";
  to.debs[0].digest = Digest::of("other");
  to.wheels[0].version = "2.5.0";
  to.wheels[1] = {.name = "scipy",
                  .version = "1.17",
                  .file = "scipy-1.17-py3-none-any.whl",
                  .size_bytes = 1,
                  .digest = Digest::of("scipy")};
  const std::vector<std::string> expected = {"packages: numpy → numpy, scipy",
                                             "+ env B=b",
                                             "cuda: 13.0 → 13.2",
                                             "git 1:2.39.5-0+deb12u2: other bytes (" +
                                                 Digest::of("git").brief() + " → " +
                                                 Digest::of("other").brief() + ")",
                                             "numpy 2.4.6 → 2.5.0",
                                             "+ scipy 1.17",
                                             "- torch 2.14.1"};
  EXPECT_EQ(lock_differences(from, to), expected);
}

TEST(Lock, TakesFromTheRecipe) {
  const Recipe recipe = parse_recipe(
      "name: a\nbase: debian:bookworm\npackages: [b, a, b]\nsystem: [git]\n", "r.yaml");
  EXPECT_EQ(request_of(recipe).packages, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request_of(recipe).python, "");
  EXPECT_EQ(settings_of(recipe).workdir, "/workspace");
}

TEST(Lock, LiesBesideTheRecipe) {
  EXPECT_EQ(lock_path("dir/recipe.yaml"), fs::path("dir/recipe.lock"));
  EXPECT_EQ(built_path("dir/my.train.yaml"), fs::path("dir/my.train.built"));
}

TEST(Built, SurvivesWritingAndReading) {
  Built built{.platform = "linux/amd64",
              .lock = Digest::of("lock"),
              .files = std::nullopt,
              .layer_format = 1,
              .image = Digest::of("image"),
              .layers = {{"debian:bookworm", Digest::of("a")}, {"torch 2", Digest::of("b")}}};
  EXPECT_EQ(parse_built(render_built(built), "r.built"), built);
  const std::string text = render_built(built);
  EXPECT_THROW(parse_built(text_with(text, "image = ", "imgae = "), "r.built"), Error);
  EXPECT_THROW(parse_built(text_with(text, Digest::of("b").hex(), "b"), "r.built"), Error);
  EXPECT_EQ(text.find("files"), std::string::npos);
  EXPECT_EQ(parse_built(text_with(text, "revision = 1", "revision = 0"), "r.built"), built);
  built.files = Digest::of("files");
  EXPECT_EQ(parse_built(render_built(built), "r.built"), built);
  EXPECT_THROW(
      parse_built(text_with(render_built(built), Digest::of("files").hex(), "f"), "r.built"),
      Error);
}

}  // namespace
}  // namespace mlenv
