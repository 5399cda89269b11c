#pragma once
// The data behind cuda_releases.hpp and framework_builds.hpp as one table:
// recipes/compat/cuda.toml, which is part of the program, and the newer releases that `mlenv data
// update` keeps in the store.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "recipes/compat/architecture.hpp"

namespace mlenv {

/// Where a row comes from.
struct CudaRowOrigin {
  std::string source;    ///< a key of `CudaTable::sources`
  std::string read;      ///< `2026-11-21`, or `2026-11` where the day was not kept
  std::string standing;  ///< empty: the maker's own words; `secondary`: a copy; `conflicting`
  std::string conflict;  ///< what another source says; empty unless `conflicting`
  friend bool operator==(const CudaRowOrigin&, const CudaRowOrigin&) = default;
};

struct CudaTable {
  struct Release {
    std::string release;               ///< `12.6`
    std::string driver;                ///< of its first release
    std::vector<std::string> updates;  ///< drivers of 12.6.1, 12.6.2, …; oldest first
    CudaRowOrigin origin;
    friend bool operator==(const Release&, const Release&) = default;
  };
  struct Floor {
    std::string major;
    std::string driver;
    CudaRowOrigin origin;
  };
  struct Architecture {
    DeviceCode code;
    std::string first;  ///< toolkit; empty: older than all that are known
    std::string last;   ///< empty: still supported
    CudaRowOrigin origin;
  };
  struct Build {
    std::string package;
    std::string release;  ///< first two numbers of the version
    std::string cuda;     ///< release that its wheels carry; empty: the version has one build alone
    bool inside = false;  ///< its x86_64 wheels hold CUDA's libraries, and name no package of them
    std::vector<DeviceCode> code;
    std::vector<std::string> versions;  ///< whose wheels were read
    CudaRowOrigin origin;
  };

  std::string date;                            ///< when it was put together
  std::map<std::string, std::string> sources;  ///< what each is
  std::vector<Release> releases;               ///< newest first
  std::vector<Floor> floors;                   ///< newest first
  std::vector<Architecture> architectures;     ///< oldest first
  std::vector<Build> builds;
};

/// Throws `cuda-data-invalid` (usage), with the place, for a file that is not whole: a row without
/// its source and date, unknown keys, versions that are none or out of order, dates that are none.
/// Lists other than `releases` may be absent.
CudaTable parse_cuda_table(std::string_view text, const fs::path& shown_path);

/// `releases` and their sources in the same form, which `parse_cuda_table` reads back.
std::string render_cuda_releases(const CudaTable& table);

/// The text of cuda.toml.
std::string_view built_in_cuda_data();

/// Why `newer` may not stand in for `built_in`'s releases; empty where it may. It must be as new,
/// and say of every release that `built_in` has what `built_in` says, further updates apart: what
/// was locked without it is locked with it to the same bytes.
std::string fault_of_update(const CudaTable& built_in, const CudaTable& newer);

/// Whether `text` is a driver's version (`580`, `455.23`, `525.60.13`), a toolkit's (`12.6`), a
/// date
/// (`2026-11-21`).
bool is_driver_version(std::string_view text);
bool is_toolkit_release(std::string_view text);
bool is_date(std::string_view text);

}  // namespace mlenv
