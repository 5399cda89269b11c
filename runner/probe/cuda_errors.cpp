#include "runner/probe/cuda_errors.hpp"

#include <array>

namespace mlenv::probe {
namespace {

using V = Verdict;

struct KnownError {
  Status status;
  const char* name;
  Verdict verdict;
  const char* advice;
};
/// CUDA Driver API, "CUresult".
constexpr std::array<KnownError, 18> kKnown = {
    {{1, "CUDA_ERROR_INVALID_VALUE", V::driver_fails, ""},
     {2, "CUDA_ERROR_OUT_OF_MEMORY", V::busy,
      "another program holds the GPU's memory: see `nvidia-smi`"},
     {3, "CUDA_ERROR_NOT_INITIALIZED", V::driver_fails, ""},
     {34, "CUDA_ERROR_STUB_LIBRARY", V::no_driver,
      "this libcuda is the toolkit's stub, for linking: take it out of LD_LIBRARY_PATH"},
     {35, "cudaErrorInsufficientDriver", V::driver_too_old,
      "the driver is older than this CUDA needs: update the driver, or take an older CUDA"},
     {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", V::driver_too_old, "update the driver"},
     {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", V::busy,
      "another program has the GPU to itself: `nvidia-smi` lists it, `nvidia-smi -q -d COMPUTE` "
      "the "
      "mode, `nvidia-smi -c DEFAULT` lets several in"},
     {100, "CUDA_ERROR_NO_DEVICE", V::no_gpu,
      "look at CUDA_VISIBLE_DEVICES, and whether /dev/nvidia0 is there (in a container: `--gpus`)"},
     {101, "CUDA_ERROR_INVALID_DEVICE", V::no_gpu,
      "CUDA_VISIBLE_DEVICES names a GPU that is not there"},
     {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", V::driver_fails, "update the driver"},
     {304, "CUDA_ERROR_OPERATING_SYSTEM", V::driver_fails,
      "the kernel refused the driver a call: `nvidia-modprobe -u -c 0` makes its device files, "
      "`dmesg` says more"},
     {800, "CUDA_ERROR_NOT_PERMITTED", V::driver_fails,
      "see who may use /dev/nvidia*: `ls -l /dev/nvidia*`, and the container's devices"},
     {801, "CUDA_ERROR_NOT_SUPPORTED", V::driver_fails, ""},
     {802, "CUDA_ERROR_SYSTEM_NOT_READY", V::not_ready,
      "the GPUs hang on NVSwitches, whose Fabric Manager does not run or is not done: start "
      "nvidia-fabricmanager of the driver's own version, and wait for it"},
     {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", V::driver_mismatch,
      "the kernel module and libcuda are of different drivers: restart the host after an update; "
      "in a container, use the host's libcuda and not the image's"},
     {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", V::compat_refused,
      "the image's compatibility libcuda does not serve this kind of GPU: take its folder out of "
      "LD_LIBRARY_PATH and update the driver"},
     {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", V::driver_fails,
      "CUDA's MPS is asked for and does not answer: start `nvidia-cuda-mps-control -d`, or unset "
      "CUDA_MPS_PIPE_DIRECTORY"},
     {999, "CUDA_ERROR_UNKNOWN", V::driver_fails,
      "often a driver that was updated under way, or a missing /dev/nvidia-uvm: `nvidia-modprobe "
      "-u`, else restart the host; lines with NVRM and Xid in `dmesg` say more"}}};

const KnownError* find_known(Status status) {
  for (const KnownError& one : kKnown) {
    if (one.status == status) return &one;
  }
  return nullptr;
}

}  // namespace

const char* advice_for(Status status) {
  const KnownError* known = find_known(status);
  return known != nullptr ? known->advice : "";
}

const char* known_name(Status status) {
  const KnownError* known = find_known(status);
  return known != nullptr ? known->name : "";
}

Verdict verdict_for(Status status) {
  const KnownError* known = find_known(status);
  return known != nullptr ? known->verdict : Verdict::driver_fails;
}

}  // namespace mlenv::probe
