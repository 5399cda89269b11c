#pragma once
// Shared libraries that Python sources name to load them: `ctypes.CDLL("libgomp.so.1")`,
// `find_library("sndfile")`, cffi's `dlopen`. No ELF file says that they are needed. Read without
// running anything: what a name is only put together from is not seen.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// One call. Any of its names will do.
struct LibraryLoad {
  /// Whether importing the module makes it, with nothing around that may go on without: no function
  /// and no `try`.
  bool at_import = false;
  std::vector<std::string> names;  ///< as written; those of other systems are left out
  friend bool operator==(const LibraryLoad&, const LibraryLoad&) = default;
};

/// Whether a file is a module of an installed package that is looked into: not Debian's own, which
/// say what they depend on, nor tests.
bool may_load_libraries(std::string_view path, std::uint64_t bytes);

/// Of a module's text. Blocks for other systems (`if sys.platform == "win32":`) do not count, nor
/// do files that lie beside the module (`os.path.join`, `__file__`).
std::vector<LibraryLoad> library_loads(std::string_view python);

/// As a line each, for the facts of a layer; and back.
std::string render_loads(const std::vector<LibraryLoad>& loads);
std::vector<LibraryLoad> read_loads(std::string_view text);

}  // namespace mlenv
