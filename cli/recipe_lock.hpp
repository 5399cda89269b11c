#pragma once
// A recipe's lock, as several commands need it.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/ui.hpp"
#include "recipes/lock_set.hpp"
#include "recipes/recipe.hpp"

namespace mlenv::cli {

/// A data set of the recipe, held against its digest.
struct VerifiedData {
  std::string name;
  fs::path from;  ///< as the recipe says it, absolute
  fs::path real;  ///< what was verified: a path without links; empty: it is not here
  std::string to;
};
struct LockOutcome {
  LockSet locks;  ///< of the recipe's platforms
  bool written = false;
  std::vector<std::string> changes;  ///< against the lock that was there
  std::vector<VerifiedData> data{};
};
struct LockChoice {
  bool locked = false;
  bool upgrade = false;                  ///< everything
  std::vector<std::string> moved_names;  ///< upgrade these Python packages alone
};
/// Reads the recipe's lock and resolves what is missing or changed; writes it beside the recipe
/// when it differs. `locked`: it must exist and match, else a refusal (exit 3) that shows the
/// difference; nothing is written. A conflict is a refusal too. Throws `bad-package` for a package
/// to move that the lock does not hold, `no-lock` where there is none.
LockOutcome provide_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice);
/// The same without writing it: `written` says whether there is something to write.
LockOutcome choose_lock(Ui& ui, const Recipe& recipe, const LockChoice& choice);
/// ``wrote `a.lock`: 1 wheel, 90 Debian packages``
std::string lock_summary(const Recipe& recipe, const LockOutcome& outcome);
/// The same for answers as JSON, with the changes.
nlohmann::json lock_as_json(const Recipe& recipe, const LockOutcome& outcome);

/// Text of a file that belongs beside the recipe; nullopt when there is none. A folder in its place
/// is a mistake with `code`.
std::optional<std::string> read_beside(const fs::path& path, std::string_view code,
                                       std::string_view what);

}  // namespace mlenv::cli
