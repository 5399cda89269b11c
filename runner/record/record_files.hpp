#pragma once
// The files of a record, for runner/record/ alone.
#include <string_view>

namespace mlenv {

inline constexpr std::string_view kStartFile = "run.json";
inline constexpr std::string_view kEndFile = "end.json";
inline constexpr std::string_view kAttemptsFile = "attempts.json";
inline constexpr std::string_view kRanksFile = "ranks.json";
inline constexpr std::string_view kPreflightFile = "preflight.json";
inline constexpr std::string_view kAgreementFile = "agreement.json";
inline constexpr std::string_view kVmFile = "vm.json";
inline constexpr std::string_view kCodeFile = "code.json";
inline constexpr std::string_view kHostFile = "host.json";
inline constexpr std::string_view kHeldFile = "held";
/// There as long as the run waits for others (`--after`).
inline constexpr std::string_view kWaitsFile = "waits";
/// Beside the records: held while a run takes its name.
inline constexpr std::string_view kNamesFile = ".names";
/// How the name of a record begins that is being made.
inline constexpr std::string_view kUnfinishedRun = ".new-";

}  // namespace mlenv
