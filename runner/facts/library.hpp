#pragma once
// A shared library that may be absent, and functions in it by their documented C signatures.
#include <dlfcn.h>
#include <link.h>

#include "base/fact.hpp"
#include "base/files.hpp"

namespace mlenv {

class Library {
 public:
  /// The loader's own search; then WSL's folder, which it need not know.
  explicit Library(const std::string& name) : handle_(::dlopen(name.c_str(), RTLD_NOW)) {
    if (handle_ == nullptr) why_ = last_error();
    if (handle_ == nullptr) handle_ = ::dlopen(("/usr/lib/wsl/lib/" + name).c_str(), RTLD_NOW);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() = default;  // not unloaded: drivers' libraries leave threads behind

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& why() const { return why_; }

  /// Null where this version has none of that name.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }
  /// The file itself, links followed.
  fs::path file() const {
    link_map* map = nullptr;
    std::error_code error;
    if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
    return fs::canonical(map->l_name, error);
  }

 private:
  static std::string last_error() {
    const char* text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): the process has one thread
    return text != nullptr ? text : "cannot be loaded";
  }
  void* handle_;
  std::string why_;
};

}  // namespace mlenv
