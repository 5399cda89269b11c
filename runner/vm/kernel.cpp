#include "runner/vm/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/own_entries.hpp"
#include "base/tar.hpp"
#include "base/text.hpp"
#include "runner/vm/initial_disk.hpp"

namespace mlenv {
namespace {

/// Of what is unpacked: another number, another folder.
constexpr int kFormat = 1;

/// What a guest needs, whichever machine QEMU gives it; what those need comes along. ext4 asks for
/// a checksum by name, which no list of needs tells.
constexpr std::array<std::string_view, 9> kWantedModules{
    "crc32c_generic", "virtio_pci", "virtio_mmio",  "virtio_blk", "virtio_console",
    "virtio_net",     "ext4",       "9pnet_virtio", "overlay"};
constexpr std::string_view kShared = "9p";

/// Where such modules lie: not all of a kernel's hundreds of megabytes are looked at.
constexpr std::array<std::string_view, 13> kModuleFolders{"/drivers/virtio/",
                                                          "/drivers/block/virtio",
                                                          "/drivers/char/virtio",
                                                          "/drivers/net/virtio",
                                                          "/drivers/net/net_failover",
                                                          "/net/core/",
                                                          "/net/9p/",
                                                          "/fs/9p/",
                                                          "/fs/netfs/",
                                                          "/fs/fscache/",
                                                          "/fs/ext4/",
                                                          "/fs/jbd2/",
                                                          "/fs/mbcache"};
constexpr std::array<std::string_view, 3> kMoreFolders{"/fs/overlayfs/", "/lib/", "/crypto/"};

struct Package {
  std::string image;
  std::string version;
  std::map<std::string, std::string> modules;
  std::set<std::string> built_in;
};

/// `virtio_net` of `…/virtio-net.ko.xz`
std::string module_name(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  std::string name{file.substr(0, file.find(".ko"))};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool may_be_wanted(std::string_view path) {
  const std::size_t kernel = path.find("/kernel/");
  if (kernel == std::string_view::npos || path.find(".ko") == std::string_view::npos) return false;
  const std::string_view below = path.substr(kernel + std::strlen("/kernel"));
  const auto begins = [&](std::string_view folder) { return below.starts_with(folder); };
  return std::any_of(kModuleFolders.begin(), kModuleFolders.end(), begins) ||
         std::any_of(kMoreFolders.begin(), kMoreFolders.end(), begins);
}

std::string whole_text(Source& data) {
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20U;
  return read_all(data, kMost);
}

std::string unpack_all(const std::string& packed) {
  MemorySource source{as_bytes(packed)};
  std::string bytes;
  FunctionSink sink{[&](ByteView part) { bytes += as_text(part); }};
  decompress(source, sink);
  return bytes;
}

Package read_package(const fs::path& file) {
  Package package;
  const auto nothing = [](const TarEntry&, Source&) {};
  read_deb(file, nothing, [&](const TarEntry& entry, Source& data) {
    if (entry.type != TarEntry::Type::file) return;
    constexpr std::string_view kImage = "boot/vmlinuz-";
    if (entry.path.starts_with(kImage)) {
      package.version = entry.path.substr(kImage.size());
      package.image = whole_text(data);
    } else if (entry.path.ends_with("/modules.builtin")) {
      const std::string list = whole_text(data);
      for (const std::string_view line : split(list, '\n')) {
        if (!line.empty()) package.built_in.insert(module_name(line));
      }
    } else if (may_be_wanted(entry.path)) {
      package.modules[module_name(entry.path)] = unpack_all(whole_text(data));
    }
  });
  return package;
}

Error bad_kernel(const fs::path& file, std::string why) {
  return failure("bad-kernel", "`{}` holds no kernel for a virtual machine", file.string())
      .because(std::move(why));
}

using Modules = std::vector<std::pair<std::string, std::string>>;

/// Each after those that it needs.
void add_module(const Package& package, const std::string& name, const fs::path& file,
                Modules& into) {
  const auto is_there = [&](const auto& one) { return one.first == name + ".ko"; };
  if (package.built_in.contains(name) || std::any_of(into.begin(), into.end(), is_there)) return;
  const auto found = package.modules.find(name);
  if (found == package.modules.end()) {
    throw bad_kernel(file, fmt::format("it lacks the module `{}`", name));
  }
  for (const std::string& need : module_needs(found->second)) {
    add_module(package, need, file, into);
  }
  into.emplace_back(name + ".ko", found->second);
}

fs::path kernel_folder(const Store& store, const Digest& package) {
  return store.root() / "vm" / "kernels" / fmt::format("{}-{}", package.hex(), kFormat);
}

}  // namespace

std::vector<std::string> module_needs(std::string_view module) {
  constexpr std::string_view kField{"\0depends=", 9};
  const std::size_t at = module.find(kField);
  if (at == std::string_view::npos) return {};
  std::string_view list = module.substr(at + kField.size());
  list = list.substr(0, list.find('\0'));
  std::vector<std::string> needs;
  for (const std::string_view one : split(list, ',')) {
    if (!one.empty()) needs.push_back(module_name(one));
  }
  return needs;
}

std::string unpacked_kernel(std::string image) {
  constexpr std::size_t kSectors = 0x1f1;  // of the part before the protected-mode code
  constexpr std::size_t kPayload = 0x248;  // its offset in that, and its length
  constexpr std::size_t kSectorBytes = 512;
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, image.data() + at, sizeof value);
    return static_cast<std::size_t>(value);
  };
  if (image.size() < kPayload + 2 * sizeof(std::uint32_t) ||
      std::string_view(image).substr(0x202, 4) != "HdrS") {
    return image;
  }
  const std::size_t sectors = std::max<std::size_t>(1, static_cast<unsigned char>(image[kSectors]));
  const std::size_t begin = (sectors + 1) * kSectorBytes + number(kPayload);
  const std::size_t length = number(kPayload + sizeof(std::uint32_t));
  if (begin > image.size() || length > image.size() - begin || length <= sizeof(std::uint32_t)) {
    return image;
  }
  std::string payload = image.substr(begin, length);
  constexpr std::string_view kGzip{"\x1f\x8b"};
  constexpr std::string_view kXz{"\xfd\x37zXZ\0", 6};
  constexpr std::string_view kZstd{"\x28\xb5\x2f\xfd"};
  const bool has_size = payload.starts_with(kXz) || payload.starts_with(kZstd);
  if (!has_size && !payload.starts_with(kGzip)) return image;
  // The kernel's own makefile puts the size behind what has none in it.
  if (has_size) payload.resize(payload.size() - sizeof(std::uint32_t));
  std::string kernel = unpack_all(payload);
  return kernel.starts_with("\177ELF") ? kernel : image;
}

std::optional<VmKernel> find_kernel(const Store& store, const Digest& package) {
  const fs::path folder = kernel_folder(store, package);
  const std::optional<std::string> version = read_file_if_exists(folder / "version");
  if (!version) return std::nullopt;
  return VmKernel{folder / "kernel", folder / "modules.cpio", std::string(trim(*version))};
}

VmKernel unpack_kernel(const Store& store, const Digest& package, const fs::path& file) {
  if (auto known = find_kernel(store, package)) return *std::move(known);
  Package read = read_package(file);
  if (read.image.empty()) throw bad_kernel(file, "it has no `/boot/vmlinuz-VERSION`");
  Modules modules;
  for (const std::string_view name : kWantedModules) {
    add_module(read, std::string(name), file, modules);
  }
  add_module(read, std::string(kShared), file, modules);
  const fs::path folder = kernel_folder(store, package);
  make_own_folders(folder.parent_path());
  const TemporaryFolder scratch = store.scratch();
  const fs::path made = scratch.path() / "kernel";
  make_folders(made);
  write_file(made / "kernel", unpacked_kernel(std::move(read.image)));
  write_file(made / "modules.cpio", modules_archive(modules));
  write_file(made / "version", read.version + "\n");
  // Another mlenv may have been faster: its bytes are the same.
  if (::rename(made.c_str(), folder.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST) {
    throw os_error(errno, "cannot make `{}`", folder.string());
  }
  return find_kernel(store, package).value();
}

}  // namespace mlenv
