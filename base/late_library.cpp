#include "base/late_library.hpp"

#include <dlfcn.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

std::string last_error() {
  const char* const text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one a thread
  return text != nullptr ? text : "the loader does not say why";
}

Error no_library(const char* soname) {
  return failure("no-library", "cannot use the library `{}`", soname)
      .because(last_error())
      .hint(
          "install it again: mlenv was compiled with it (docs/dependencies.md lists what it "
          "needs)");
}

}  // namespace

void* LateLibrary::function(const char* name) {
  std::call_once(opened_, [&] {
    handle_ = ::dlopen(soname_, RTLD_LAZY | RTLD_LOCAL);
    if (handle_ == nullptr) throw no_library(soname_);
  });
  void* const found = ::dlsym(handle_, name);
  if (found == nullptr) throw no_library(soname_);
  return found;
}

}  // namespace mlenv
