#include "recipes/compat/architecture.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 23> kArchitectures = {
    "sm_35", "sm_37",  "sm_50",  "sm_52",  "sm_53",  "sm_60",  "sm_61", "sm_62",
    "sm_70", "sm_72",  "sm_75",  "sm_80",  "sm_86",  "sm_87",  "sm_88", "sm_89",
    "sm_90", "sm_100", "sm_103", "sm_107", "sm_110", "sm_120", "sm_121"};

/// Compute capability of products that people say the name of (NVIDIA's list of CUDA GPUs, November
/// 2026).
struct Product {
  std::string_view name;
  std::string_view architecture;
};
constexpr std::array<Product, 20> kProducts = {
    {{"p100", "sm_60"},    {"v100", "sm_70"},   {"t4", "sm_75"},    {"a100", "sm_80"},
     {"a30", "sm_80"},     {"a10", "sm_86"},    {"a40", "sm_86"},   {"a6000", "sm_86"},
     {"rtx3090", "sm_86"}, {"l4", "sm_89"},     {"l40", "sm_89"},   {"l40s", "sm_89"},
     {"rtx4090", "sm_89"}, {"h100", "sm_90"},   {"h200", "sm_90"},  {"gh200", "sm_90"},
     {"b200", "sm_100"},   {"gb200", "sm_100"}, {"b300", "sm_103"}, {"rtx5090", "sm_120"}}};

bool is_known(std::string_view text) {
  return std::find(kArchitectures.begin(), kArchitectures.end(), text) != kArchitectures.end();
}

/// Lower case, without blanks, `-`, `_` and `.`.
std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' || c == '-' || c == '_' || c == '.') continue;
    out += to_lower(c);
  }
  return out;
}

}  // namespace

bool runs_on(const DeviceCode& code, const DeviceCode& gpu) {
  const bool is_family = code.major == gpu.major && code.minor <= gpu.minor;
  if (code.variant == 'a') return code.major == gpu.major && code.minor == gpu.minor;
  if (code.variant == 'f' || !code.ptx) return is_family;
  return is_family || code.major < gpu.major;
}

Coverage coverage(const std::vector<DeviceCode>& codes, const DeviceCode& gpu) {
  Coverage best = Coverage::none;
  for (const DeviceCode& code : codes) {
    if (!runs_on(code, gpu)) continue;
    if (!code.ptx) return Coverage::complete;
    best = Coverage::by_ptx;
  }
  return best;
}

std::span<const std::string_view> gpu_architectures() { return kArchitectures; }

std::string meant_architecture(std::string_view text) {
  std::string word = squeezed(text);
  for (const Product& product : kProducts) {
    if (product.name == word) return std::string(product.architecture);
  }
  for (const std::string_view prefix : {"compute", "sm", "nvidia", "tesla", "geforce"}) {
    if (word.starts_with(prefix)) word.erase(0, prefix.size());
  }
  if (word.ends_with('a') || word.ends_with('f')) word.pop_back();
  if (is_known("sm_" + word)) return "sm_" + word;
  for (const Product& product : kProducts) {
    if (product.name == word) return std::string(product.architecture);
  }
  return std::string(nearest(text, kArchitectures));
}

}  // namespace mlenv
