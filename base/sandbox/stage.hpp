#pragma once
// The re-executed half of the sandbox, three processes of one binary:
//
//   stage     enters the namespaces, starts the keeper, ends as the program ended; the keeper goes
//             with it, and it goes with the caller
//   keeper    process 1 of the sandbox: builds the scaffold, starts the program, reaps, and, in
//             recorded runs, answers system calls and collects the owners; the kernel ends all
//             others with it
//   program   what was asked for
#include "base/sandbox/plan.hpp"

namespace mlenv::sandbox {

/// Runs the stage; the value is its exit status.
int run_stage();

/// Runs the keeper, a child of the stage, and does not return. `outside` is the tree before any
/// mount; `status` takes the program's wait status.
[[noreturn]] void run_keeper(const Plan& plan, Fd outside, Fd report, Fd status);

/// Writes `error` where the caller looks for it.
void report_error(int report, const Error& error);

}  // namespace mlenv::sandbox
