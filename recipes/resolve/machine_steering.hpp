#pragma once
// What of this machine's settings of uv and pip would choose other packages than the recipe says:
// variables, pip.conf, uv.toml. No lock is made with them, as it would be another one elsewhere;
// indexes, logins, proxies and certificates alone are the machine's.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

struct MachineWord {
  std::string where;  ///< `UV_OVERRIDE`, `prerelease` of a file
  /// Of a recipe, that says the same: `overrides`, `build: {constraints: …}`; empty: none does.
  std::string key;
  std::string value;  ///< as written; of a file of uv's empty
  friend bool operator==(const MachineWord&, const MachineWord&) = default;
};

/// `environment`: `NAME=value`; `root`: where `etc` is. Files that cannot be read say nothing.
std::vector<MachineWord> machine_steering(const std::vector<std::string>& environment,
                                          const fs::path& root = "/");

/// Whether uv may see the variable: of its own those alone that are the machine's (indexes, logins,
/// proxies, the cache), so that none that a later uv knows steers it.
bool may_reach_uv(std::string_view variable);

/// Files of uv's settings: the user's, then the machine's; those that there are.
struct UvConfigFiles {
  fs::path user;     ///< empty: there is none
  fs::path machine;  ///< the same
};
UvConfigFiles uv_config_files(const std::vector<std::string>& environment, const fs::path& root);

/// Those of the settings that are the machine's, as TOML; nullopt where all are, or the text is no
/// TOML.
std::optional<std::string> without_steering(const std::string& text);

/// For uv: where its settings steer it, or would put aside those beside the question, variables
/// name copies in `folder` that do not.
void narrow_uv_config(std::vector<std::string>& environment, const fs::path& folder,
                      const fs::path& root = "/");

}  // namespace mlenv
