#pragma once
// Two equal runs, for tests to make differ in one place.
#include <string>

#include "runner/changes/changes.hpp"

namespace mlenv::test {

/// A training on two GPUs that ended well; everything is known of it.
RunRecord whole_run();
/// The same without GPUs given to it.
RunRecord cpu_run();
Facts whole_host();

/// Rules of what is not incidental, most likely first, with a blank between; `rule=breaks` where
/// the weight is not the rule's own.
std::string rules_in(const changes::Changes& found);
/// `not_compared`, with a comma between.
std::string open_in(const changes::Changes& found);
/// The finding of a rule; fails the test where there is none.
changes::Change finding(const changes::Changes& found, std::string_view rule);

changes::Changes between(const RunRecord& from, const RunRecord& to);
changes::Changes between(const Facts& from, const Facts& to);

}  // namespace mlenv::test
