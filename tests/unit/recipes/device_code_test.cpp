#include "recipes/device_code.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/zip_builder.hpp"

namespace mlenv {
namespace {

using test::little_endian;

struct Entry {
  std::uint64_t kind = 2;  ///< 1: PTX, 2: machine code
  std::uint64_t architecture = 80;
  std::uint64_t flags = 0x11;
  std::size_t size = 24;
};

/// As nvcc's fatbinary writes them (laid out like those of libtorch_cuda.so 2.15).
std::string fatbin(const std::vector<Entry>& entries) {
  std::string body;
  for (const Entry& entry : entries) {
    std::string header = little_endian(entry.kind, 2) + little_endian(0x101, 2) +
                         little_endian(64, 4) + little_endian(entry.size, 8);
    header.resize(28);
    header += little_endian(entry.architecture, 4);
    header.resize(40);
    header += little_endian(entry.flags, 8);
    header.resize(64);
    // Code may hold anything, a container's magic number too.
    body += header + little_endian(0xBA55ED50, 4) + std::string(entry.size - 4, '\x7f');
  }
  return little_endian(0xBA55ED50, 4) + little_endian(1, 2) + little_endian(16, 2) +
         little_endian(body.size(), 8) + body;
}

std::string names(const std::set<DeviceCode>& codes) {
  std::string text;
  for (const DeviceCode& code : codes) text += code.name() + ' ';
  return text;
}

std::string scanned(std::string_view bytes, std::size_t chunk) {
  FatbinScanner scanner;
  for (std::size_t at = 0; at < bytes.size(); at += chunk) {
    scanner.write(as_bytes(bytes.substr(at, chunk)));
  }
  return names(scanner.found());
}

TEST(FatbinScanner, FindsEveryEntryHoweverTheBytesArrive) {
  const std::string bytes =
      "\x7f"
      "ELF of something\x50\xed\x55" +
      fatbin({{2, 75}, {2, 90, 0x100011}, {1, 120, 0x8011, 300}}) + std::string(5000, '\0') +
      fatbin({{2, 100, 0x1008011, 70000}}) + "end";
  for (const std::size_t chunk :
       {std::size_t{1}, std::size_t{7}, std::size_t{4096}, bytes.size()}) {
    EXPECT_EQ(scanned(bytes, chunk), "sm_75 sm_90a sm_100 compute_120 ") << chunk;
  }
}

TEST(FatbinScanner, PassesOverWhatOnlyLooksLikeOne) {
  const std::string magic = little_endian(0xBA55ED50, 4);
  EXPECT_EQ(scanned(magic, 1), "");
  EXPECT_EQ(scanned(magic + magic + fatbin({{2, 80}}), 3), "sm_80 ");
  // An entry that says it is larger than its container, and one of a kind that is no code.
  std::string wrong = fatbin({{2, 86}});
  wrong[16 + 8] = '\x7f';
  EXPECT_EQ(scanned(wrong + fatbin({{2, 80}}), 64), "sm_80 ");
  EXPECT_EQ(scanned(fatbin({{16, 90}, {2, 80}}), 64), "sm_80 ");
  const std::string whole = fatbin({{2, 75}, {2, 80}});
  EXPECT_EQ(scanned(whole.substr(0, whole.size() - 80), 64), "sm_75 ");
}

class DeviceCodeOfWheels : public testing::Test {
 protected:
  LockedWheel add(const std::string& name, const std::map<std::string, std::string>& files) {
    test::ZipBuilder zip;
    for (const auto& [path, text] : files) zip.add(path, text, /*deflated=*/text.size() > 100);
    const std::string bytes = zip.finish();
    LockedWheel wheel{name,
                      "1.0",
                      name + "-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                      bytes.size(),
                      Digest::of(bytes),
                      true};
    write_file(folder_.path() / wheel.file, bytes, false);
    lock_.wheels.push_back(wheel);
    return wheel;
  }

  std::vector<std::string> missing() {
    return missing_device_code(
        lock_,
        [&](const LockedWheel& wheel) -> std::optional<fs::path> {
          const fs::path path = folder_.path() / wheel.file;
          if (!fs::exists(path)) return std::nullopt;
          return path;
        },
        folder_.path() / "cache", progress_);
  }

  TemporaryFolder folder_{temporary_root(), "mlenv-test-"};
  Lock lock_;
  QuietProgress progress_;
};

TEST_F(DeviceCodeOfWheels, AreReadForTheGpusThatAreAskedFor) {
  add("plain", {{"plain/a.so", "no device code at all"}});
  const LockedWheel torch =
      add("torch", {{"torch/lib/libtorch_cuda.so", fatbin({{2, 80}, {2, 90}})},
                    {"torch/lib/liblinalg.so.1", fatbin({{1, 90}})},
                    {"torch/data.bin", fatbin({{2, 70}})}});
  lock_.request.gpus = {"sm_86", "sm_90", "sm_120"};
  EXPECT_EQ(missing(), std::vector<std::string>{});
  lock_.request.gpus = {"sm_70", "sm_86"};
  const std::vector<std::string> expected = {
      "torch 1.0 holds code for sm_80 sm_90 compute_90, and none that runs on sm_70"};
  EXPECT_EQ(missing(), expected);

  // What was read is remembered, also when the wheel is damaged since; a damaged memory is not
  // used.
  const fs::path path = folder_.path() / torch.file;
  const std::string bytes = read_file(path);
  write_file(path, "no wheel", false);
  EXPECT_EQ(missing(), expected);
  write_file(folder_.path() / "cache/device-code" / torch.digest.hex(), "sm_70", false);
  EXPECT_THROW((void)missing(), Error);
  write_file(path, bytes, false);
  EXPECT_EQ(missing(), expected);
}

TEST_F(DeviceCodeOfWheels, OfNvidiaAndAbsentOnesAreLeftOut) {
  add("nvidia-cusparselt-cu13", {{"nvidia/a.so", fatbin({{2, 80}})}});
  const LockedWheel gone = add("torch", {{"torch/a.so", fatbin({{2, 80}})}});
  fs::remove(folder_.path() / gone.file);
  lock_.request.gpus = {"sm_75"};
  EXPECT_EQ(missing(), std::vector<std::string>{});
}

}  // namespace
}  // namespace mlenv
