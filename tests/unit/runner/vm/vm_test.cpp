// Plain functions of virtual machines: archives, kernels, words of QEMU, the choice of accelerator.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "recipes/text.hpp"
#include "runner/vm/accelerator.hpp"
#include "runner/vm/initial_disk.hpp"
#include "runner/vm/kernel.hpp"
#include "runner/vm/qemu.hpp"
#include "tests/support/deb_builder.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::test {
namespace {

TEST(InitialDisk, IsAnArchiveOfCpio) {
  CpioArchive archive;
  archive.add_folder("a");
  archive.add_file("a/b", "hello", true);
  const std::string bytes = archive.finish();
  EXPECT_EQ(bytes.size() % 4, 0U);
  EXPECT_EQ(bytes.substr(0, 22),
            "0707010000000100"
            "0041ed");
  EXPECT_NE(bytes.find("000081ed"), std::string::npos);
  EXPECT_NE(bytes.find(std::string("a/b\0", 4)), std::string::npos);
  EXPECT_NE(bytes.find(std::string("hello\0\0\0", 8)), std::string::npos);
  EXPECT_NE(bytes.find("TRAILER!!!"), std::string::npos);
}

TEST(InitialDisk, ListsModulesInTheirOrder) {
  const std::string bytes = modules_archive({{"b.ko", "1"}, {"a.ko", "2"}});
  EXPECT_NE(bytes.find("b.ko\na.ko\n"), std::string::npos);
}

TEST(VmKernel, NeedsOfAModule) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(module_needs(std::string("x\0depends=a-b,c\0y", 17)), (Names{"a_b", "c"}));
  EXPECT_EQ(module_needs(std::string("x\0depends=\0y", 12)), Names{});
  EXPECT_EQ(module_needs("nothing"), Names{});
}

TEST(VmKernel, WhatIsNoPackedKernelStaysAsItIs) {
  EXPECT_EQ(unpacked_kernel("short"), "short");
  const std::string zeros(4096, '\0');
  EXPECT_EQ(unpacked_kernel(zeros), zeros);
  std::string strange = zeros;
  strange.replace(0x202, 4, "HdrS");
  strange.replace(0x24c, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(unpacked_kernel(strange), strange);
}

TEST(VmKernel, APackageWithoutOneIsRefused) {
  const TemporaryFolder folder{temporary_root()};
  Store store{folder.path() / "store"};
  const fs::path empty = folder.path() / "a.deb";
  write_file(empty, deb_of("a", {test_file("usr/share/a", "x")}));
  EXPECT_EQ(code_of([&] { unpack_kernel(store, Digest::of("a"), empty); }), "bad-kernel");
  // A kernel alone is not enough.
  const fs::path bare = folder.path() / "b.deb";
  write_file(bare, deb_of("b", {test_file("boot/vmlinuz-6.1.0", "x")}));
  EXPECT_EQ(code_of([&] { unpack_kernel(store, Digest::of("b"), bare); }), "bad-kernel");
}

TEST(VmKernel, IsUnpackedWithWhatItsModulesNeed) {
  const TemporaryFolder folder{temporary_root()};
  Store store{folder.path() / "store"};
  const std::string modules = "lib/modules/6.1.0/kernel/";
  std::vector<TestEntry> entries{
      test_file("boot/vmlinuz-6.1.0", "kernel"),
      test_file("lib/modules/6.1.0/modules.builtin",
                "kernel/fs/ext4/ext4.ko\nkernel/crypto/crc32c_generic.ko\n")};
  for (const char* name :
       {"drivers/virtio/virtio_pci", "drivers/virtio/virtio_mmio", "drivers/block/virtio_blk",
        "drivers/char/virtio_console", "drivers/net/virtio_net", "net/9p/9pnet_virtio",
        "fs/overlayfs/overlay", "fs/9p/9p"}) {
    entries.push_back(test_file(modules + name + ".ko", std::string("\0depends=virtio\0", 16)));
  }
  entries.push_back(test_file(modules + "drivers/virtio/virtio.ko", "first"));
  entries.push_back(test_file(modules + "drivers/gpu/huge.ko", "unwanted"));
  const fs::path file = folder.path() / "a.deb";
  write_file(file, deb_of("a", entries));
  const VmKernel kernel = unpack_kernel(store, Digest::of("a"), file);
  EXPECT_EQ(kernel.version, "6.1.0");
  EXPECT_EQ(read_file(kernel.file), "kernel");
  const std::string archive = read_file(kernel.modules);
  EXPECT_NE(archive.find("virtio.ko\nvirtio_pci.ko\n"), std::string::npos);
  EXPECT_EQ(archive.find("huge"), std::string::npos);
  EXPECT_TRUE(find_kernel(store, Digest::of("a")).has_value());
  EXPECT_FALSE(find_kernel(store, Digest::of("b")).has_value());
}

std::string words_of(const QemuMachine& machine) {
  std::string text;
  for (const std::string& word : qemu_words(machine)) text += word + " ";
  return text;
}
TEST(Qemu, Words) {
  QemuMachine machine;
  machine.spec.qemu = "/q";
  machine.spec.disk = "/a,b";
  machine.spec.cpus = 2;
  machine.spec.memory_bytes = std::uint64_t{1} << 30U;
  machine.ports = {{"127.0.0.1", 8080, 80, "tcp"}};
  const std::string words = words_of(machine);
  EXPECT_TRUE(says(words, "-machine q35"));
  EXPECT_TRUE(says(words, "-accel tcg -cpu max -smp 2 -m 1024M"));
  EXPECT_TRUE(says(words, "file.filename=/a,,b"));
  EXPECT_TRUE(says(words, "-add-fd fd=4,set=1"));
  EXPECT_TRUE(says(words, "drive=scratch,werror=report"));
  EXPECT_TRUE(says(words, "hostfwd=tcp:127.0.0.1:8080-:80"));
  EXPECT_TRUE(says(words, "virtio-net-pci"));
  EXPECT_TRUE(says(words, "security_model=passthrough"));
  machine.has_network = false;
  machine.owners_kept = false;
  machine.accelerator = Accelerator::kvm;
  const std::string other = words_of(machine);
  EXPECT_TRUE(says(other, "-accel kvm -cpu host"));
  EXPECT_TRUE(says(words, "tsc=unstable"));
  EXPECT_FALSE(says(other, "tsc=unstable"));
  EXPECT_TRUE(says(other, "security_model=none"));
  EXPECT_FALSE(says(other, "-netdev"));
}

TEST(Accelerator, IsChosenByWhatIsKnown) {
  const AcceleratorChoice absent = choose_accelerator("no /dev/kvm", SeenKvm{true, {}}, 0);
  EXPECT_EQ(absent.accelerator, Accelerator::tcg);
  EXPECT_EQ(absent.why, "no /dev/kvm");
  const AcceleratorChoice hung = choose_accelerator("", SeenKvm{false, "it hung", 1, 1000}, 1001);
  EXPECT_EQ(hung.accelerator, Accelerator::tcg);
  EXPECT_EQ(hung.why, "it hung");
  const AcceleratorChoice unknown = choose_accelerator("", std::nullopt, 0);
  EXPECT_EQ(unknown.accelerator, Accelerator::kvm);
  EXPECT_EQ(unknown.patience, std::chrono::seconds{8});
  // One that worked may still hang: that must not cost much, nor a busy machine its KVM.
  const AcceleratorChoice known = choose_accelerator("", SeenKvm{true, {}}, 0);
  EXPECT_EQ(known.accelerator, Accelerator::kvm);
  EXPECT_EQ(known.patience, std::chrono::seconds{20});
}

TEST(Accelerator, AFailureIsNotForEver) {
  constexpr std::int64_t kThen = 1'000'000;
  constexpr std::int64_t kHour = 3600;
  const SeenKvm once = SeenKvm::failed(std::nullopt, "it hung", kThen);
  EXPECT_EQ(once, (SeenKvm{false, "it hung", 1, kThen}));
  const auto taken = [](const SeenKvm& seen, std::int64_t now) {
    return choose_accelerator("", seen, now).accelerator;
  };
  EXPECT_EQ(taken(once, kThen + kHour - 1), Accelerator::tcg);
  EXPECT_EQ(taken(once, kThen + kHour), Accelerator::kvm);
  EXPECT_EQ(choose_accelerator("", once, kThen + kHour).patience, std::chrono::seconds{20});
  EXPECT_EQ(taken(once, kThen - 1), Accelerator::kvm);  // the clock was set back
  const SeenKvm again = SeenKvm::failed(once, "it hung", kThen + kHour);
  EXPECT_EQ(again.failures, 2U);
  EXPECT_EQ(taken(again, kThen + 24 * kHour), Accelerator::tcg);
  EXPECT_EQ(taken(again, kThen + 25 * kHour), Accelerator::kvm);
  EXPECT_EQ(SeenKvm::failed(SeenKvm{true, {}}, "it hung", kThen).failures, 1U);
}

TEST(Accelerator, IsRememberedForEachProgram) {
  const TemporaryFolder folder{temporary_root()};
  const KvmMemory memory{folder.path() / "kvm", "/usr/bin/qemu"};
  EXPECT_EQ(memory.read(), std::nullopt);
  memory.write({false, "it hung\nand more", 2, 1234});
  EXPECT_EQ(memory.read(), (SeenKvm{false, "it hung\nand more", 2, 1234}));
  EXPECT_EQ(KvmMemory(folder.path() / "kvm", "/opt/qemu").read(), std::nullopt);
  memory.write({true, {}});
  EXPECT_EQ(memory.read(), (SeenKvm{true, {}}));
  write_file(memory.file(), "of another version");
  EXPECT_EQ(memory.read(), std::nullopt);
}

TEST(Accelerator, IsTriedAgainWithAnotherProgramInTheSamePlace) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path qemu = folder.path() / "qemu";
  write_file(qemu, "old");
  KvmMemory{folder.path() / "kvm", qemu}.write({false, "it hung", 1, 1234});
  EXPECT_NE((KvmMemory{folder.path() / "kvm", qemu}.read()), std::nullopt);
  write_file(qemu, "newer");
  EXPECT_EQ((KvmMemory{folder.path() / "kvm", qemu}.read()), std::nullopt);
}

}  // namespace
}  // namespace mlenv::test
