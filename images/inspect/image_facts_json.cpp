#include <algorithm>
#include <array>

#include "base/record_json.hpp"
#include "images/inspect/image_facts.hpp"

namespace mlenv {
namespace {

constexpr RecordKind kKind = {"mlenv.image-facts/1", "facts of an image",
                              "`mlenv inspect IMAGE --facts --json >FILE` writes them"};

}  // namespace

bool is_heeded_variable(std::string_view name) {
  constexpr std::array<std::string_view, 4> kHeeded = {"LD_LIBRARY_PATH", "LD_PRELOAD",
                                                       "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME"};
  return name.starts_with("NVIDIA_") || name.starts_with("CUDA_") || name.starts_with("NCCL_") ||
         std::find(kHeeded.begin(), kHeeded.end(), name) != kHeeded.end();
}

std::string render_image_facts(const ImageFacts& facts) { return render_record(facts, kKind); }

ImageFacts read_image_facts(std::string_view text, std::string_view shown) {
  return read_record<ImageFacts>(text, shown, kKind);
}

}  // namespace mlenv
