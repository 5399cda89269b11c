#include "cli/run_caches.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/settings.hpp"

namespace mlenv::cli {
namespace {

struct KnownCache {
  std::string_view name;
  std::string_view short_name;
  std::string_view variable;
  std::string_view folder;  ///< below the folder of caches, where the variable is not set
};
constexpr std::array kCaches = {
    KnownCache{"huggingface", "hf", "HF_HOME", "huggingface"},
    KnownCache{"torch", "torch", "TORCH_HOME", "torch"},
    KnownCache{"pip", "pip", "PIP_CACHE_DIR", "pip"},
    KnownCache{"uv", "uv", "UV_CACHE_DIR", "uv"},
};

Cache shown_cache(const KnownCache& cache) {
  const auto set = variable(cache.variable);
  // Beside mlenv's own.
  const fs::path folder = set ? fs::absolute(*set) : cache_folder().parent_path() / cache.folder;
  make_folders(folder);
  // Not below anybody's home: that may be another one in the container.
  const std::string target = fmt::format("/var/cache/mlenv/{}", cache.name);
  return {{folder.lexically_normal(), target}, fmt::format("{}={}", cache.variable, target)};
}

}  // namespace

std::vector<Cache> caches_of(const std::vector<std::string>& words) {
  std::vector<const KnownCache*> wanted;
  const auto want = [&](const KnownCache& cache) {
    if (std::find(wanted.begin(), wanted.end(), &cache) == wanted.end()) wanted.push_back(&cache);
  };
  for (const std::string& word : words) {
    for (const std::string_view name : split(word, ',')) {
      bool known = false;
      for (const KnownCache& cache : kCaches) {
        if (name != "all" && name != cache.name && name != cache.short_name) continue;
        known = true;
        want(cache);
      }
      if (!known) {
        throw usage_error("usage", "`--cache {}` names no cache", word)
            .hint("there are huggingface, torch, pip, uv, and all");
      }
    }
  }
  std::vector<Cache> caches;
  caches.reserve(wanted.size());
  for (const KnownCache* const one : wanted) caches.push_back(shown_cache(*one));
  return caches;
}

}  // namespace mlenv::cli
