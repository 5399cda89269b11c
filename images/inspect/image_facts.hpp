#pragma once
// What an image needs of a host, and what its own files lack, as its configuration and its bytes
// say; for any image, mlenv's or not. Written as JSON (schema mlenv.image-facts/1) it can be judged
// against hosts where the image is not.
//
// A recipe or a lock gives the same facts as far as they are known before a build; the others are
// unknown then. Lists are sorted by their first member; a known empty list is a "none". Paths are
// absolute within the image; where several files have the same need, the first of them is named.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fact.hpp"

namespace mlenv {

/// A library of which the version matters, where it lies.
struct FoundLibrary {
  std::string path;     ///< empty in facts of a lock
  std::string version;  ///< `13.2.75`; as exact as the file, its package or its name tells
  friend bool operator==(const FoundLibrary&, const FoundLibrary&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("version", self.version);
  }
};

struct FrameworkBuild {
  std::string name;     ///< `torch`, `tensorflow`, `jax`: the package
  std::string version;  ///< with its local part: `2.7.1+cu126`
  std::string cuda;     ///< release that it was built for, `13.2` or `12`; `cpu`; empty: not told
  friend bool operator==(const FrameworkBuild&, const FrameworkBuild&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("version", self.version);
    visit("cuda", self.cuda);
  }
};

/// A library with device code.
struct DeviceLibrary {
  std::string path;  ///< in facts of a lock: the package
  /// `sm_80`, `sm_90a`, `compute_90` (compat/architecture.hpp); sorted by number.
  std::vector<std::string> code;
  /// Whether a GPU that it has no code for is at a loss: true for a framework's main kernels, and
  /// where there is no framework for all but NVIDIA's libraries, which leave out what a GPU has no
  /// use for.
  bool decides = false;
  friend bool operator==(const DeviceLibrary&, const DeviceLibrary&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("code", self.code);
    visit("decides", self.decides);
  }
};

/// A libcuda for forward compatibility: the JSON of its ELF note `.note.cuda.fwd_compatibility`.
struct ForwardCompatibility {
  std::string path;
  std::string cuda_version;          ///< `13.0`
  std::vector<std::string> drivers;  ///< branches that it works on: `535`, `550`
  std::vector<std::string> devices;  ///< PCI device ids, or other names, as the note has them
  /// Whether the image's LD_LIBRARY_PATH leads to it, by whatever links, so that it answers to
  /// libcuda.so.1; nothing: what wrote the facts did not look.
  std::optional<bool> in_library_path = {};
  friend bool operator==(const ForwardCompatibility&, const ForwardCompatibility&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("cuda_version", self.cuda_version);
    visit("drivers", self.drivers);
    visit("devices", self.devices);
    visit("in_library_path", self.in_library_path);
  }
};

/// The highest version of a library's symbols that files need, and that its file in the image has.
struct SymbolVersions {
  std::string needed;     ///< `GLIBC_2.34`; empty: none is
  std::string needed_by;  ///< a file
  std::string present;    ///< empty: the image has no such library
  friend bool operator==(const SymbolVersions&, const SymbolVersions&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("needed", self.needed);
    visit("needed_by", self.needed_by);
    visit("present", self.present);
  }
};

/// A library that a file names and that the dynamic linker would not find (ld.so(8)).
struct MissingLibrary {
  std::string library;  ///< soname
  std::string needed_by;
  std::uint64_t files = 0;  ///< that need it
  /// Whether a run brings it from the host: libcuda.so.1, libnvidia-ml.so.1 and the like.
  bool from_driver = false;
  /// A file of that name in the image, where the linker does not look: a program may load it itself
  /// before. Empty: there is none.
  std::string elsewhere = {};
  /// Whether no program and no Python module comes to need it when it starts: those that do are
  /// plugins, which somebody may load or not.
  bool optional = false;
  /// Whether something that starts lacks it, which nobody brings along or loads before.
  bool is_wanted() const { return !from_driver && !optional && elsewhere.empty(); }
  friend bool operator==(const MissingLibrary&, const MissingLibrary&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("library", self.library);
    visit("needed_by", self.needed_by);
    visit("files", self.files);
    visit("from_driver", self.from_driver);
    visit("elsewhere", self.elsewhere);
    visit("optional", self.optional);
  }
};

/// A version of symbols that the library in the image, though found, does not define.
struct MissingVersion {
  std::string library;
  std::string version;  ///< `GLIBCXX_3.4.32`
  std::string needed_by;
  std::uint64_t files = 0;
  friend bool operator==(const MissingVersion&, const MissingVersion&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("library", self.library);
    visit("version", self.version);
    visit("needed_by", self.needed_by);
    visit("files", self.files);
  }
};

/// Instructions that a framework's code is compiled for without asking the CPU first.
struct CpuNeed {
  std::string who;                 ///< `tensorflow 2.21.0`, a file, or the wheel's own tag
  std::vector<std::string> flags;  ///< by the kernel's names: `avx`, `sse4_2`; sorted
  friend bool operator==(const CpuNeed&, const CpuNeed&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("who", self.who);
    visit("flags", self.flags);
  }
};

struct Variable {
  std::string name;
  std::string value;
  friend bool operator==(const Variable&, const Variable&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("value", self.value);
  }
};

/// Bytes that a container of the image never sees or never needs.
struct Waste {
  std::string kind;  ///< `shadowed` (replaced or deleted by a later layer), `pip-cache`,
                     ///< `uv-cache`, `apt-lists`, `apt-cache`
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  friend bool operator==(const Waste&, const Waste&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind);
    visit("bytes", self.bytes);
    visit("files", self.files);
  }
};

/// A top-level Python package that an `import` statement did not get.
struct FailedImport {
  std::string package;  ///< normalised name of what brought it
  std::string version;
  std::string import;   ///< `lightgbm`, `google.cloud.storage`
  std::string error;    ///< one line, as Python says it; or how the process ended
  std::string library;  ///< that could not be opened: `libgomp.so.1`; empty: another reason
  std::string module;   ///< that nobody brings: `sklearn`; empty: another reason
  friend bool operator==(const FailedImport&, const FailedImport&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("package", self.package);
    visit("version", self.version);
    visit("import", self.import);
    visit("error", self.error);
    visit("library", self.library);
    visit("module", self.module);
  }
};

struct ImageFacts {
  std::string name;          ///< reference or path that it was asked for by
  std::string digest;        ///< of the image; empty: known before the build
  std::string kind;          ///< `image`, `lock`, `recipe`: how much can be known
  std::string architecture;  ///< OCI's: `amd64`, `arm64`
  Fact<std::vector<FoundLibrary>> cuda_runtimes;  ///< libcudart, or libraries that hold it
  Fact<std::vector<FoundLibrary>> cudnn;
  Fact<std::vector<FoundLibrary>> nccl;
  Fact<std::vector<FrameworkBuild>> frameworks;
  Fact<std::vector<DeviceLibrary>> device_code;
  Fact<std::vector<ForwardCompatibility>> forward_compatibility;
  Fact<SymbolVersions> glibc;
  Fact<SymbolVersions> libstdcxx;  ///< `GLIBCXX_…`
  /// Of the C library's `.note.ABI-tag`: `3.2.0`; empty: there is none of GNU's, which asks.
  Fact<std::string> least_kernel;
  Fact<std::vector<CpuNeed>> cpu;
  Fact<std::vector<MissingLibrary>> missing_libraries;
  Fact<std::vector<MissingVersion>> missing_versions;
  Fact<std::uint64_t> packed_bytes;  ///< of its layers as they are pulled, each once
  Fact<std::uint64_t> unpacked_bytes;
  Fact<std::vector<Waste>> waste;
  Fact<std::vector<std::string>> user_ids;  ///< that /etc/passwd has an entry for; sorted
  Fact<std::string> user;                   ///< that containers run as; empty: root
  /// Of its configuration, those that rules heed: `NVIDIA_*`, `CUDA_*`, `NCCL_*`,
  /// `LD_LIBRARY_PATH`, `LD_PRELOAD`, `OMP_NUM_THREADS`, `GLOO_SOCKET_IFNAME`.
  std::vector<Variable> environment;
  Fact<std::string> oldest_driver;      ///< the recipe's or the label's: `580`, `525.60.13`
  Fact<std::vector<std::string>> gpus;  ///< architectures that the recipe promises; empty: none
  /// Those of its Python packages; unknown where nobody tried (`mlenv build --imports`).
  Fact<std::vector<FailedImport>> failed_imports;
  friend bool operator==(const ImageFacts&, const ImageFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("digest", self.digest);
    visit("kind", self.kind);
    visit("architecture", self.architecture);
    visit("cuda_runtimes", self.cuda_runtimes);
    visit("cudnn", self.cudnn);
    visit("nccl", self.nccl);
    visit("frameworks", self.frameworks);
    visit("device_code", self.device_code);
    visit("forward_compatibility", self.forward_compatibility);
    visit("glibc", self.glibc);
    visit("libstdcxx", self.libstdcxx);
    visit("least_kernel", self.least_kernel);
    visit("cpu", self.cpu);
    visit("missing_libraries", self.missing_libraries);
    visit("missing_versions", self.missing_versions);
    visit("packed_bytes", self.packed_bytes);
    visit("unpacked_bytes", self.unpacked_bytes);
    visit("waste", self.waste);
    visit("user_ids", self.user_ids);
    visit("user", self.user);
    visit("environment", self.environment);
    visit("oldest_driver", self.oldest_driver);
    visit("gpus", self.gpus);
    visit("failed_imports", self.failed_imports);
  }
};

/// Whether rules heed the variable: ImageFacts::environment.
bool is_heeded_variable(std::string_view name);

/// mlenv.image-facts/1 on one line, keys sorted, without the newline.
std::string render_image_facts(const ImageFacts& facts);

/// The other way, as `read_facts` (runner/facts) does it: what is not there is unknown; throws
/// `bad-facts`, `facts-version` (usage) and `bad-json`.
ImageFacts read_image_facts(std::string_view text, std::string_view shown);

}  // namespace mlenv
