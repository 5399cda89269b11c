#pragma once
// The kernel of a virtual machine: a package of the distribution, unpacked into the store as what
// QEMU starts.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "images/store.hpp"

namespace mlenv {

struct VmKernel {
  fs::path file;
  fs::path modules;     ///< a cpio archive
  std::string version;  ///< `6.1.0-56-amd64`
};

/// The one that was made of this package; nullopt: none was.
std::optional<VmKernel> find_kernel(const Store& store, const Digest& package);

/// Makes it of the package's file. Throws `bad-kernel` for one that lacks what a guest needs,
/// `bad-deb`.
VmKernel unpack_kernel(const Store& store, const Digest& package, const fs::path& file);

/// What is in a bzImage (Linux Documentation/arch/x86/boot.rst), which QEMU starts at once where
/// the packed one would first unpack itself, in emulation for seconds. The image itself where it is
/// packed in a way that we do not know.
std::string unpacked_kernel(std::string image);

/// Names of the modules that one needs, from its own text.
std::vector<std::string> module_needs(std::string_view module);

}  // namespace mlenv
