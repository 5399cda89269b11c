#include "images/inspect/elf.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.hpp"
#include "tests/fuzz/one_elf.hpp"
#include "tests/support/corpus.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

std::optional<ElfFile> opened(const fs::path& path) {
  const Fd fd = open_file(path);
  OpenFileBytes bytes{fd.get(), fs::file_size(path)};
  auto elf = read_elf(bytes);
  if (elf) elf->device_code = device_code_in(bytes);
  return elf;
}

fs::path elf_sample(const char* name) { return source_folder() / "tests/fuzz/corpus/elf" / name; }

TEST(Elf, SaysWhatItNeeds) {
  const auto elf = opened(elf_sample("good-top.so"));
  ASSERT_TRUE(elf);
  EXPECT_EQ(elf->machine, 62);
  EXPECT_TRUE(elf->is_dynamic);
  EXPECT_EQ(elf->soname, "libtop.so.2");
  EXPECT_EQ(elf->needed, Strings{"libdep.so.1"});
  EXPECT_EQ(elf->runpath, "$ORIGIN/../lib");
  EXPECT_EQ(elf->rpath, "");
  const VersionNeed need = {"libdep.so.1", {"DEP_1.0", "DEP_2.0"}};
  EXPECT_EQ(elf->version_needs, std::vector<VersionNeed>{need});
  EXPECT_EQ(elf->least_kernel, "3.2.0");
  EXPECT_EQ(elf->device_code, (Strings{"sm_75", "sm_90a", "compute_120"}));
  EXPECT_EQ(elf->forward_compatibility,
            R"({"CUDA Version": "13.0", "Driver": ["535"], "Device": ["2330"]})");
}

TEST(Elf, SaysWhichVersionsItDefines) {
  const auto elf = opened(elf_sample("good-dep.so"));
  ASSERT_TRUE(elf);
  EXPECT_EQ(elf->versions, (Strings{"DEP_1.0", "DEP_2.0"}));
}

TEST(Elf, StaticAndSmallerKinds) {
  const auto fixed = opened(elf_sample("good-static"));
  ASSERT_TRUE(fixed);
  EXPECT_FALSE(fixed->is_dynamic);
  const auto narrow = opened(elf_sample("good-32.so"));
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->bits, 32);
  EXPECT_EQ(narrow->machine, 3);
  EXPECT_TRUE(narrow->is_dynamic);
}

TEST(Elf, CodeCountsInItsSectionAlone) {
  // cuBLAS keeps more of it in a section of its own, which follows at once.
  const std::vector<FatbinRun> runs = {{100, 200, {{false, 7, 5, 0}}},
                                       {200, 300, {{false, 8, 0, 0}}},
                                       {300, 400, {{false, 9, 0, 0}}}};
  const std::vector<ByteRange> section = {{150, 150}};
  EXPECT_EQ(device_code_of(runs, section), (Strings{"sm_75", "sm_80"}));
  EXPECT_EQ(device_code_of(runs, std::nullopt), (Strings{"sm_75", "sm_80", "sm_90"}));
}

TEST(Elf, IsTheSameOpenedAndStreaming) {
  int count = 0;
  for (const fs::path& path : {fs::path("/proc/self/exe"), elf_sample("good-top.so")}) {
    const auto expected = opened(fs::canonical(path));
    ASSERT_TRUE(expected);
    const std::string bytes = read_file(path);
    EXPECT_EQ(fuzz::streamed_elf(as_bytes(bytes), std::size_t{1} << 20U), expected) << path;
    ++count;
  }
  EXPECT_EQ(count, 2);
}

/// Of 64 MiB, told to be of `expected` bytes.
void expect_ends(std::uint64_t expected) {
  const std::uint64_t middle = PassingBytes::kHead + 1000;
  PassingBytes bytes{{{middle, 8}}, expected};
  std::string block(std::size_t{1} << 20U, '\0');
  const std::size_t blocks = 64;
  for (std::size_t i = 0; i < blocks; ++i) {
    std::fill(block.begin(), block.end(), static_cast<char>(i));
    bytes.write(as_bytes(block));
  }
  const std::uint64_t size = blocks << 20U;
  ASSERT_EQ(bytes.size(), size);
  const auto at = [&](std::uint64_t offset) {
    std::byte one{255};
    return bytes.read(offset, {&one, 1}) ? std::to_integer<int>(one) : -1;
  };
  EXPECT_EQ(at(0), 0);
  EXPECT_EQ(at(PassingBytes::kHead - 1), 23);
  EXPECT_EQ(at(middle), 24);
  EXPECT_EQ(at(size - 1), 63);
  EXPECT_EQ(at(size - PassingBytes::kTail), 56);
  EXPECT_EQ(at(size), -1);
  EXPECT_TRUE(bytes.wanted().empty());
  EXPECT_EQ(at(middle + 100), -1);
  ASSERT_EQ(bytes.wanted().size(), 1);
  EXPECT_EQ(bytes.wanted()[0].offset, middle + 100);
}

TEST(PassingBytes, KeepsTheEndsAndWhatIsAskedFor) {
  expect_ends(0);
  expect_ends(std::uint64_t{64} << 20U);
  expect_ends(std::uint64_t{16} << 20U);  // it grew
}

}  // namespace
}  // namespace mlenv
