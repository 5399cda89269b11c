#pragma once
// A newer table from NVIDIA's index of redistributables: a folder with a redistrib_X.Y.Z.json for
// each toolkit since 11.4, which names, among others, the `nvidia_driver` that was released with
// it. The index knows neither floors nor architectures.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/compat/cuda_table.hpp"

namespace mlenv {

/// One file of the index.
struct Redistrib {
  std::string release;  ///< `12.6`
  unsigned update = 0;  ///< 3 of 12.6.3
  std::string driver;   ///< for linux-x86_64; empty: the file names none
};

/// Names of such files in a listing of the folder (HTML or plain), each once, oldest first. Those
/// of releases before `oldest` are left out.
std::vector<std::string> redistrib_names(std::string_view listing, std::string_view oldest);

/// Throws `redistrib-invalid` for what is no such file or is for another release than its name
/// says.
Redistrib parse_redistrib(std::string_view text, std::string_view name);

struct CudaUpdate {
  CudaTable table;
  bool changed = false;               ///< `table` says more than the one before
  std::vector<std::string> added;     ///< releases
  std::vector<std::string> extended;  ///< releases that have further updates
  std::vector<std::string> left_out;  ///< what of the index was not taken over, in words
};

/// `from` with what `found` adds to it, as of `today`. Drivers that `from` has stay; what `found`
/// has in their place is kept in words (`CudaRowOrigin::conflict`). Releases of a major version
/// without a row in `from.floors` are left out: nothing could be said about them. Throws
/// `redistrib-invalid` for a new release whose driver does not follow that of the release before
/// it.
CudaUpdate updated_cuda_table(const CudaTable& from, std::vector<Redistrib> found,
                              const std::string& today);

}  // namespace mlenv
