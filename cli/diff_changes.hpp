#pragma once
// What changed between runs and hosts, as lines and as JSON.
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/diff_moments.hpp"

namespace mlenv::cli {

/// The two, how their ends differ, what it is most likely, then all that was found by what comes of
/// it; what cannot matter is counted, or with `all` listed. Last what is not known.
std::vector<std::string> changes_text(const NamedMoment& from, const NamedMoment& to,
                                      const changes::Changes& found, bool all);

/// mlenv.diff/1
nlohmann::json changes_json(const NamedMoment& from, const NamedMoment& to,
                            const changes::Changes& found);
/// Its members that tell what was found, of locks and images, too.
void add_findings(nlohmann::json& answer, const changes::Changes& found);

}  // namespace mlenv::cli
