// The CUDA driver API by its documented C interface.
#include <fmt/core.h>

#include "runner/facts/nvidia.hpp"
#include "runner/facts/nvidia_calls.hpp"

namespace mlenv {

using nvidia::Calls;
using nvidia::Status;

GpuAnswers ask_cuda() {
  const Library library("libcuda.so.1");
  if (!library) return no_answers(library.why());
  const Calls calls(library);
  GpuAnswers answers = no_answers("not asked of CUDA");
  int version = 0;
  if (!calls.failure<Status(int*)>("cuDriverGetVersion", &version)) {
    answers.cuda_version = known(cuda_version(version), "cuDriverGetVersion");
  }
  auto* init = library.function<Status(unsigned)>("cuInit");
  if (init == nullptr) return answers;
  const Status status = init(0);
  answers.cuda_status = known(static_cast<std::uint64_t>(status), "cuInit");
  answers.dma_buf = unknown<bool>(fmt::format("cuInit: error {}", status));
  int count = 0;
  if (status != 0 || calls.failure<Status(int*)>("cuDeviceGetCount", &count)) return answers;
  constexpr int kDmaBuf = 124;  // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
  bool all = true;
  for (int device = 0; device < count; ++device) {
    int value = 0;
    if (const auto wrong = calls.failure<Status(int*, int, int)>("cuDeviceGetAttribute", &value,
                                                                 kDmaBuf, device)) {
      answers.dma_buf = unknown<bool>(*wrong);
      return answers;
    }
    all = all && value != 0;
  }
  answers.dma_buf = known(all, "cuDeviceGetAttribute");
  return answers;
}

}  // namespace mlenv
