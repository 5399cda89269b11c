#pragma once
// What an ELF file says of itself to the dynamic linker and of its device code (gABI chapters 4 and
// 5, System V psABI; Linux Standard Base 5.0 "Symbol Versioning"; glibc's elf.h).
//
// Files may be anybody's: what does not fit together is left out, sizes and numbers are bounded,
// and nothing is read outside the file.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/device_code.hpp"
#include "images/inspect/fatbin.hpp"
#include "images/inspect/file_bytes.hpp"

namespace mlenv {

/// Versions of one library's symbols that a file was linked against.
struct VersionNeed {
  std::string library;
  std::vector<std::string> versions;  ///< without the weak ones, whose absence is no error
  friend bool operator==(const VersionNeed&, const VersionNeed&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("library", self.library);
    visit("versions", self.versions);
  }
};

struct ElfFile {
  std::uint64_t machine = 0;  ///< EM_X86_64 is 62, EM_AARCH64 183
  std::uint64_t bits = 64;
  bool is_little_endian = true;
  bool is_dynamic = false;  ///< has a dynamic section; without one it is static, or an object
  std::string interpreter;  ///< the dynamic linker that the kernel starts; empty: none
  std::vector<std::string> needed;
  std::string soname;
  std::string rpath;  ///< DT_RPATH as it is, `$ORIGIN` and all
  std::string runpath;
  bool no_default_folders = false;  ///< DF_1_NODEFLIB
  std::vector<VersionNeed> version_needs;
  std::vector<std::string> versions;  ///< that it defines, without the one that names the file
  std::string least_kernel;           ///< `3.2.0`, of `.note.ABI-tag`
  std::string forward_compatibility;  ///< JSON of `.note.cuda.fwd_compatibility`
  std::uint64_t x86_level = 0;  ///< x86-64-v1 … v4 that a GNU property demands; 0: none does
  std::vector<std::string> device_code;  ///< of its sections of fat binaries; sorted by number
  friend bool operator==(const ElfFile&, const ElfFile&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("machine", self.machine);
    visit("bits", self.bits);
    visit("is_little_endian", self.is_little_endian);
    visit("is_dynamic", self.is_dynamic);
    visit("interpreter", self.interpreter);
    visit("needed", self.needed);
    visit("soname", self.soname);
    visit("rpath", self.rpath);
    visit("runpath", self.runpath);
    visit("no_default_folders", self.no_default_folders);
    visit("version_needs", self.version_needs);
    visit("versions", self.versions);
    visit("least_kernel", self.least_kernel);
    visit("forward_compatibility", self.forward_compatibility);
    visit("x86_level", self.x86_level);
    visit("device_code", self.device_code);
  }
};

inline constexpr std::string_view kElfMagic = "\177ELF";

/// nullopt for what is no ELF file, and for relocatable objects and core dumps. Without device
/// code, which `device_code_in` finds. What `bytes` has not at hand is left out (`PassingBytes`
/// then says what is wanted).
std::optional<ElfFile> read_elf(FileBytes& bytes);

/// Where it holds fat binaries: sections `.nv_fatbin` and `__nv_relfatbin`, as cuobjdump has it.
/// nullopt: it has no section headers.
std::optional<std::vector<ByteRange>> fatbin_sections(FileBytes& bytes);

/// Ranges that `read_elf` and `fatbin_sections` will ask for, from a file's first bytes.
std::vector<ByteRange> elf_tables(ByteView head);

/// Of the runs that reach into one of the sections, or of all where sections are not known.
std::vector<std::string> device_code_of(const std::vector<FatbinRun>& runs,
                                        const std::optional<std::vector<ByteRange>>& sections);

/// The sections' headers alone are read.
std::vector<std::string> device_code_in(FileBytes& bytes);

}  // namespace mlenv
