#pragma once
// The records of the runs that a comparison makes: read for what a virtual machine was, and
// removed, for they are not the person's.
#include <string>

#include "runner/compare/comparison.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::compare {

/// Name of their label.
inline constexpr std::string_view kLabel = "mlenv.compare";

/// `vm` was: `q35, kvm, kernel 6.1.0`, and why it is emulated.
Machine machine_of(const VmUse& vm);
/// Of the newest run with `label` (K=V); nullopt: there is none.
std::optional<RunRecord> newest_record(const RunRecords& records, const std::string& label);
/// Of the newest run with the label that has one; `unknown` where none has.
Machine newest_machine(const RunRecords& records, const std::string& label);

/// Removes the records with the label, whatever its value, whose runs are over: also those that a
/// comparison left which was killed.
void remove_records(const RunRecords& records);

}  // namespace mlenv::compare
