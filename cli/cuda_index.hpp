#pragma once
// NVIDIA's index of redistributables, from a folder or over HTTP.
#include <string>
#include <vector>

#include "base/http.hpp"
#include "recipes/compat/cuda_update.hpp"

namespace mlenv::cli {

/// All files of the index at `place` (a folder, or an http or https URL) that are of `oldest` or
/// newer. Throws `redistrib-invalid`, or what says why the place cannot be read (`network`,
/// `http-status`, `absent`).
std::vector<Redistrib> read_redistributables(const std::string& place, std::string_view oldest,
                                             Http& http);

}  // namespace mlenv::cli
