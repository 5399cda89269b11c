#pragma once
// Where the rules draw their lines: docs/watch.md tells them, and how they were chosen. Shares are
// from 0 to 1.
#include <cstdint>

namespace mlenv::watch {

inline constexpr double kShortest = 3;       // seconds
inline constexpr std::uint64_t kFewest = 3;  // samples
// Of the usable processors: with more there is nothing to gain that is worth a sentence.
inline constexpr double kBusyCpus = 0.7;
inline constexpr double kFewCpus = 0.5;
inline constexpr double kStalled = 0.3;         // of the looks
inline constexpr double kOneThreadLeast = 0.7;  // of a processor, wanted by all threads together
inline constexpr double kOneThreadMost = 1.3;
inline constexpr double kOneOfAll = 0.6;      // of what all threads want: else they take turns
inline constexpr double kThreadBusy = 0.8;    // the busiest one
inline constexpr double kTooManyThreads = 2;  // times the usable processors
// Of the time that threads were ready, they had no processor.
inline constexpr double kContended = 0.15;
inline constexpr double kQueuedLeast = 0.2;  // processors
inline constexpr double kOthers = 0.1;       // of the machine's processors
inline constexpr double kThrottled = 0.25;   // of the quota's periods
inline constexpr double kQuotaUsed = 0.8;
inline constexpr double kMemoryFull = 0.95;
inline constexpr double kSwapped = 0.02;
inline constexpr double kSwapFaults = 50;  // a second
inline constexpr double kIdleGpu = 0.05;
inline constexpr double kLowGpu = 0.5;
inline constexpr double kSlowedGpu = 0.2;

}  // namespace mlenv::watch
