#pragma once
// Caches of this machine that a run may be given (`--cache`): models, wheels.
#include <string>
#include <vector>

#include "runner/local/run.hpp"

namespace mlenv::cli {

struct Cache {
  Mount mount;
  std::string variable;  ///< `HF_HOME=/…`: leads there inside
};

/// `huggingface` (or `hf`), `torch`, `pip`, `uv`, several with commas, or `all`. Folders are those
/// that the machine's own variables name (HF_HOME, TORCH_HOME, PIP_CACHE_DIR, UV_CACHE_DIR), else
/// the programs' usual ones, and are made where they are absent. Throws `usage`, `io`.
std::vector<Cache> caches_of(const std::vector<std::string>& words);

}  // namespace mlenv::cli
