#include "runner/probe/cuda.hpp"

#include <dlfcn.h>
#include <link.h>

namespace mlenv::probe {
namespace {

const char* loader_error() {
  const char* text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): the process has one thread
  return text != nullptr ? text : "cannot be loaded";
}

/// Functions by name, and the names of those that are missing.
class Finder {
 public:
  explicit Finder(const Shared& library) : library_(library) {}
  /// The first name that is there; the later ones are older.
  template <class Pointer>
  void operator()(Pointer& into, std::initializer_list<const char*> names) {
    optional(into, names);
    if (into == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(*names.begin());
  }
  template <class Pointer>
  void optional(Pointer& into, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (into == nullptr) into = reinterpret_cast<Pointer>(library_.find(name));
    }
  }
  const std::string& missing() const { return missing_; }

 private:
  const Shared& library_;
  std::string missing_;
};

}  // namespace

Shared::Shared(const std::vector<std::string>& names) {
  std::string why;
  for (const std::string& name : names) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle_ == nullptr) {
      if (why.empty()) why = loader_error();
      continue;
    }
    link_map* map = nullptr;
    const bool told = ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
    file_ = told ? map->l_name : name;
    return;
  }
  throw LibraryError(why);
}

void* Shared::find(const char* name) const { return ::dlsym(handle_, name); }

Cuda::Cuda() : library({"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}) {
  Finder find(library);
  find(init, {"cuInit"});
  find(driver_version, {"cuDriverGetVersion"});
  find(device_count, {"cuDeviceGetCount"});
  find(device, {"cuDeviceGet"});
  find(device_name, {"cuDeviceGetName"});
  find.optional(device_uuid, {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"});
  find(device_attribute, {"cuDeviceGetAttribute"});
  find(device_memory, {"cuDeviceTotalMem_v2"});
  find(retain_context, {"cuDevicePrimaryCtxRetain"});
  find(release_context, {"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"});
  find(set_context, {"cuCtxSetCurrent"});
  find(synchronize, {"cuCtxSynchronize"});
  find(allocate, {"cuMemAlloc_v2"});
  find(free, {"cuMemFree_v2"});
  find(allocate_host, {"cuMemHostAlloc"});
  find(free_host, {"cuMemFreeHost"});
  find(to_device, {"cuMemcpyHtoDAsync_v2"});
  find(to_host, {"cuMemcpyDtoHAsync_v2"});
  find(in_device, {"cuMemcpyDtoDAsync_v2"});
  find(to_peer, {"cuMemcpyPeerAsync"});
  find(can_access_peer, {"cuDeviceCanAccessPeer"});
  find(enable_peer, {"cuCtxEnablePeerAccess"});
  find(load_module, {"cuModuleLoadData"});
  find(unload_module, {"cuModuleUnload"});
  find(function, {"cuModuleGetFunction"});
  find(launch, {"cuLaunchKernel"});
  find.optional(error_name, {"cuGetErrorName"});
  if (!find.missing().empty()) {
    throw LibraryError(library.file() + " has no " + find.missing());
  }
}

void Cuda::check(Status status, const char* what) const {
  if (status == 0) return;
  const char* name = nullptr;
  if (error_name != nullptr && error_name(status, &name) != 0) name = nullptr;
  const std::string words = name != nullptr ? name : known_name(status);
  throw ApiError(std::string(what) + ": " + (words.empty() ? "error" : words) + " (" +
                     std::to_string(status) + ")",
                 status);
}

}  // namespace mlenv::probe
