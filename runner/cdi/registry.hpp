#pragma once
// The CDI specifications of this machine, and what containers get for the devices that they name.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "runner/cdi/spec.hpp"

namespace mlenv {

/// /etc/cdi and /var/run/cdi: of two devices of one name that in the latter counts.
std::vector<fs::path> cdi_folders();

class CdiRegistry {
 public:
  /// Reads `*.json` and `*.yaml` of the folders, of which later ones count more. A broken file is
  /// kept as an error, which only who asks for its devices meets.
  explicit CdiRegistry(const std::vector<fs::path>& folders);

  /// One more, below all that are there.
  void add(CdiSpec spec);
  bool has(std::string_view kind) const;
  /// Of the kind's devices, sorted: numbers by value, before words. Throws what a broken file has
  /// to say where that is the only one that may hold the kind.
  std::vector<std::string> names(const std::string& kind) const;
  /// What the devices need, and once what their specifications need for all. Throws `no-device`
  /// (with the names that there are), and `bad-cdi` for a broken file that may hold it or two
  /// files of one folder that both do.
  CdiEdits edits(const std::vector<CdiName>& devices) const;

 private:
  struct Source {
    std::size_t rank = 0;  ///< the higher one counts
    CdiSpec spec;
  };
  struct Broken {
    std::string text;
    Error error;
  };
  void add_file(const fs::path& file, std::size_t rank);
  void refuse_broken(const std::string& kind) const;
  const CdiSpec& holder(const CdiName& device) const;
  Error absent(const CdiName& device) const;

  std::vector<Source> sources_;
  std::vector<Broken> broken_;
};

/// Throws `stale-cdi` where a file or device of the host that the edits name is absent: the
/// specification was written for another driver, or devices have gone since. `shown` says whose
/// edits they are.
void require_on_host(const CdiEdits& edits, const std::string& shown);

}  // namespace mlenv
