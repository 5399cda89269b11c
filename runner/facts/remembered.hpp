#pragma once
// What programs said of themselves, remembered from run to run.
#include "runner/facts/sources.hpp"
#include "runner/own_folder.hpp"

namespace mlenv {

/// `from`, which asks a program for its version once as long as its file stays the same. Only
/// programs of machine code are remembered: a script may answer with another program's version.
/// Answers are kept in `folder`, a month long; failures are not.
FactSources with_remembered_versions(FactSources from, OwnFolder folder);

}  // namespace mlenv
