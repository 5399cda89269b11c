#pragma once
// The CUDA driver API by its documented C interface (NVIDIA's "CUDA Driver API"), looked up by name
// in the libcuda.so.1 that the loader finds.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "runner/probe/cuda_errors.hpp"

namespace mlenv::probe {

using Device = int;
using Context = void*;
using Address = unsigned long long;  // CUdeviceptr
using Module = void*;
using Function = void*;
using Stream = void*;  // null: the default stream

/// What a library answered, in words: `cuInit: CUDA_ERROR_NO_DEVICE (100)`.
class ApiError : public std::runtime_error {
 public:
  ApiError(const std::string& words, Status status) : std::runtime_error(words), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

/// No library, or one without a function.
class LibraryError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A library by the loader's search, or by its path; it stays loaded. Throws LibraryError.
class Shared {
 public:
  explicit Shared(const std::vector<std::string>& names);
  /// Null where it has none of that name.
  void* find(const char* name) const;
  /// The file itself; the name that was asked for where the loader does not say.
  const std::string& file() const { return file_; }

 private:
  void* handle_ = nullptr;
  std::string file_;
};

struct Cuda {
  /// Throws LibraryError, naming every function that is missing.
  Cuda();

  Shared library;
  Status (*init)(unsigned) = nullptr;
  Status (*driver_version)(int*) = nullptr;
  Status (*device_count)(int*) = nullptr;
  Status (*device)(Device*, int) = nullptr;
  Status (*device_name)(char*, int, Device) = nullptr;
  Status (*device_uuid)(unsigned char*, Device) = nullptr;  // null: not there
  Status (*device_attribute)(int*, int, Device) = nullptr;
  Status (*device_memory)(std::size_t*, Device) = nullptr;
  Status (*retain_context)(Context*, Device) = nullptr;
  Status (*release_context)(Device) = nullptr;
  Status (*set_context)(Context) = nullptr;
  Status (*synchronize)() = nullptr;
  Status (*allocate)(Address*, std::size_t) = nullptr;
  Status (*free)(Address) = nullptr;
  Status (*allocate_host)(void**, std::size_t, unsigned) = nullptr;
  Status (*free_host)(void*) = nullptr;
  Status (*to_device)(Address, const void*, std::size_t, Stream) = nullptr;
  Status (*to_host)(void*, Address, std::size_t, Stream) = nullptr;
  Status (*in_device)(Address, Address, std::size_t, Stream) = nullptr;
  Status (*to_peer)(Address, Context, Address, Context, std::size_t, Stream) = nullptr;
  Status (*can_access_peer)(int*, Device, Device) = nullptr;
  Status (*enable_peer)(Context, unsigned) = nullptr;
  Status (*load_module)(Module*, const void*) = nullptr;
  Status (*unload_module)(Module) = nullptr;
  Status (*function)(Function*, Module, const char*) = nullptr;
  Status (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Stream, void**, void**) = nullptr;
  Status (*error_name)(Status, const char**) = nullptr;  // null: not there

  /// Throws ApiError unless `status` is success.
  void check(Status status, const char* what) const;
};

}  // namespace mlenv::probe
